# mypy: ignore-errors
from preamble import refused

refused("swapon", 0, 0)
refused("swapoff", 0)
