# mypy: ignore-errors
import socket

from preamble import denied

for family, address in (
    (socket.AF_INET, ("192.0.2.1", 443)),
    (socket.AF_INET6, ("2001:db8::1", 443)),
    (socket.AF_INET, ("127.0.0.1", 22)),
    (socket.AF_INET, ("169.254.169.254", 80)),
):

    def connect(family: int = family, address: tuple = address) -> None:
        line = socket.socket(family)
        line.settimeout(3)
        line.connect(address)

    denied(connect, str(address))
