# mypy: ignore-errors
import array
import os
import socket

from preamble import cradle, frame, tether

null = os.open("/dev/null", os.O_RDONLY)
many = array.array("i", [null] * 250)
line, control = tether(), cradle()
control.setblocking(False)
for number in range(1 << 40, (1 << 40) + 20):
    call = frame(b'{"event":"call","id":%d,"name":"hostile.echo"}' % number, b'{"text": "x"}')
    for wire in (line, control):
        try:
            wire.sendmsg([call], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, many)])
        except OSError:
            continue
