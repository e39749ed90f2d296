# mypy: ignore-errors
import glob
import os
import socket

from preamble import judge, pids, safe, unsafe

found = [
    path
    for folder in ("/workspace", "/tmp", "/dev/shm", os.path.expanduser("~"), "/host-folders")
    for path in glob.glob(f"{folder}/**/of-the-first", recursive=True)
]
judge(found, "files of a neighbour:")
try:
    socket.socket(socket.AF_UNIX).connect("\0of-the-first")
    unsafe("the neighbour's abstract socket answers")
except OSError as error:
    safe(error)
judge(len(pids()) > 4, f"{len(pids())} processes are visible")
with open("/proc/self/mountinfo") as file:
    judge("session-" in file.read(), "names of sessions in mountinfo")
