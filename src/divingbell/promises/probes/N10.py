# mypy: ignore-errors
import socket

from preamble import denied


def listen(family: int) -> None:
    line = socket.socket(family)
    line.bind(("0.0.0.0" if family == socket.AF_INET else "::", PORT))  # noqa: F821  (from the host)
    line.listen()


denied(lambda: listen(socket.AF_INET), "listen")
denied(lambda: listen(socket.AF_INET6), "listen on v6")
