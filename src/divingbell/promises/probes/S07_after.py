# mypy: ignore-errors
import builtins
import os

from preamble import judge

found = []
for folder in (os.path.expanduser("~"), "/workspace", "/tmp", "/dev/shm", "/var"):
    for above, _, names in os.walk(folder):
        for name in names:
            with open(f"{above}/{name}", errors="replace") as file:
                if name != "preamble.py" and "planted" in name + file.read():
                    found.append(f"{above}/{name}")
judge(found, "left by the session before:")
judge(hasattr(builtins, "planted"), "ran by itself:")
