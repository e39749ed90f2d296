# mypy: ignore-errors
import ctypes

from preamble import refused

refused("io_setup", 60000, bytes(ctypes.sizeof(ctypes.c_long)))
