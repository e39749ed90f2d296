# mypy: ignore-errors
import fcntl
import os
import tempfile

from preamble import refused

with tempfile.TemporaryDirectory() as folder:
    file = os.open(f"{folder}/leased", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    refused("fcntl", file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    above = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    refused("fcntl", above, fcntl.F_NOTIFY, fcntl.DN_CREATE)
    os.close(above)
    os.close(file)
