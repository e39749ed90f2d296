# mypy: ignore-errors
# Announce as copies: ourselves, a child, a grandchild that is gone.
import os
import socket
import time

from preamble import cradle

line = cradle()
kept = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3)]
socket.send_fds(line, [b"copy"], [kept[0][1].fileno()])
for _, theirs in kept[1:]:
    if os.fork() == 0:
        socket.send_fds(line, [b"copy"], [theirs.fileno()])
        time.sleep(100)
        os._exit(0)
os.kill(os.getpid(), 9)
