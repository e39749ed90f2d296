# mypy: ignore-errors
import os
import socket

from preamble import take

A_MESSAGE = 250
null = os.open("/dev/null", os.O_RDONLY)
most = MOST  # noqa: F821  (from the host)
kept = []


def send() -> bool:
    kept.append(socket.socketpair())
    socket.send_fds(kept[-1][0], [b"x"], [null] * min(most, A_MESSAGE))
    return True


take(send, most)
