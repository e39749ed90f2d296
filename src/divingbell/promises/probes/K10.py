# mypy: ignore-errors
from preamble import refused

refused("pivot_root", b".", b".")
