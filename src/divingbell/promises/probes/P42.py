# mypy: ignore-errors
import os

from preamble import denied


def put(path: str, text: bytes) -> int:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        return os.write(descriptor, text)
    finally:
        os.close(descriptor)


denied(lambda: put("/proc/self/uid_map", b"0 0 1"), "uid_map")
denied(lambda: put("/proc/self/gid_map", b"0 0 1"), "gid_map")
denied(lambda: put("/proc/self/setgroups", b"allow"), "setgroups")
denied(lambda: put("/proc/self/loginuid", b"0"), "loginuid")
denied(lambda: put("/proc/self/autogroup", b"-20"), "autogroup")
