# mypy: ignore-errors
from preamble import refused

refused("io_uring_setup", 8, bytes(120))
refused("io_uring_enter", -1, 0, 0, 0, 0, 0)
refused("io_uring_register", -1, 0, 0, 0)
