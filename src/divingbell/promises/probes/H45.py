# mypy: ignore-errors
import array
import os
import socket

from preamble import cradle

line = cradle()
line.setblocking(False)
null = os.open("/dev/null", os.O_RDONLY)
for count in [250, 1, 2, 253] * 100:
    many = array.array("i", [null] * count)
    try:
        line.sendmsg([b"copy"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)])
        line.send(os.urandom(64))
        line.send(b"x" * 4096)
    except OSError:
        continue
print("SAFE sent")
