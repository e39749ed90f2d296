# mypy: ignore-errors
from preamble import refused

refused("iopl", 3)
refused("ioperm", 0, 1, 1)
refused("modify_ldt", 0, 0, 0)
