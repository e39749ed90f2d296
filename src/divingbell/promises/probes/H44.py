# mypy: ignore-errors
import array
import os
import socket

from preamble import tether

line = tether()
null = os.open("/dev/null", os.O_RDONLY)
many = array.array("i", [null] * 250)
for _ in range(20):
    try:
        line.sendmsg([b" "], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)])
    except OSError:
        break
