# mypy: ignore-errors
import os

from preamble import denied

for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/proc/1/root/etc/shadow"):
    denied(lambda path=path: os.open(path, os.O_RDONLY), path)
