# mypy: ignore-errors
from preamble import judge, safe

try:
    with open("/proc/net/unix") as file:
        # Those of this very session's code apart, there are none.
        names = [line.split()[-1] for line in file if "@" in line]
    judge([name for name in names if "of-the-first" not in name], "abstract sockets:")
except OSError as error:
    safe(error)
