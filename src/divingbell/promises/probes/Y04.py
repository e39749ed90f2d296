# mypy: ignore-errors
import sys

from preamble import denied, judge, libc

os = sys.modules["random"]._os
denied(lambda: os.open("/etc/shadow", os.O_RDONLY), "shadow, by random._os")
for kind in object.__subclasses__():
    if kind.__name__ == "_wrap_close":
        system = kind.__init__.__globals__["system"]
        judge(system("cat /etc/shadow 2>/dev/null") == 0, "shadow, by object.__subclasses__")
judge(libc.system(b"cat /etc/shadow 2>/dev/null") == 0, "shadow, by C's system()")
