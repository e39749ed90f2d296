"""Errors of name look-ups, made to say why: there is no network.

Much code catches such an error and prints its words, and then no hint follows.
"""

import socket
from typing import Any

_look_up: Any = socket.getaddrinfo


def install() -> None:
    """Have `socket.getaddrinfo` say it, which everything in Python asks. Done in the zygote."""
    socket.getaddrinfo = _getaddrinfo


def _getaddrinfo(*arguments: Any, **named: Any) -> Any:
    try:
        return _look_up(*arguments, **named)
    except socket.gaierror as error:
        words = f"{error.strerror}: there is no network in the sandbox"
        raise socket.gaierror(error.errno, words) from None
