# mypy: ignore-errors
import builtins
import os

from preamble import judge


def readable(path: str) -> bool:
    """What an image has for root alone was not left by a session."""
    return os.access(path, os.R_OK)


found = []
for folder in (os.path.expanduser("~"), "/workspace", "/tmp", "/dev/shm", "/var"):
    for above, _, names in os.walk(folder):
        paths = [f"{above}/{name}" for name in names if name != "preamble.py"]
        for path in filter(readable, paths):
            with open(path, errors="replace") as file:
                if "planted" in path + file.read(1 << 16):
                    found.append(path)
judge(found, "left by the session before:")
judge(hasattr(builtins, "planted"), "ran by itself:")
