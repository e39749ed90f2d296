# mypy: ignore-errors
from preamble import refused

refused("settimeofday", 1, 0)
refused("clock_settime", 0, 0)
refused("clock_adjtime", 0, 0)
refused("adjtimex", 0)
