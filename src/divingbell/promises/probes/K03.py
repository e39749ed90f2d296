# mypy: ignore-errors
from preamble import refused

refused("keyctl", 0, -3, 0)
refused("keyctl", 11, -3, 0, 0)
refused("add_key", b"user", b"x", b"x", 1, -3)
refused("request_key", b"user", b"x", 0, -3)
