# mypy: ignore-errors
import ctypes

ctypes.string_at(0)
