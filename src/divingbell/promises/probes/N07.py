# mypy: ignore-errors
import socket

from preamble import denied

denied(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3), "packet")
for protocol in (1, 6, 17, 255):
    denied(lambda p=protocol: socket.socket(socket.AF_INET, socket.SOCK_RAW, p), f"raw {protocol}")
    denied(
        lambda p=protocol: socket.socket(socket.AF_INET6, socket.SOCK_RAW, p), f"raw6 {protocol}"
    )
