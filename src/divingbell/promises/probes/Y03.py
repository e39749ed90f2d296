# mypy: ignore-errors
import string

from preamble import denied


class Thing:
    def __init__(self) -> None:
        self.x = 1


# Python is no wall here: the walk succeeds, and what it leads to is outside all the same.
reached = f"{Thing().__init__.__globals__['__builtins__']}"
string.Formatter().format("{0.__class__.__mro__}", Thing())
builtins = Thing.__init__.__globals__["__builtins__"]
importer = builtins["__import__"] if isinstance(builtins, dict) else builtins.__import__
os = importer("os")
denied(lambda: os.open("/etc/shadow", os.O_RDONLY), "shadow, by a format string's way")
denied(lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY), "core_pattern")
