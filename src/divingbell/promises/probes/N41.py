# mypy: ignore-errors
import socket

from preamble import safe, unsafe

try:
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(2)
    line.connect("\0" + NAME)  # noqa: F821  (given by the host)
    unsafe("an abstract socket of the host answers")
except OSError as error:
    safe(error)
try:
    line = socket.socket(socket.AF_INET)
    line.settimeout(2)
    line.connect(("127.0.0.1", PORT))  # noqa: F821
    unsafe("a port of the host's loopback answers")
except OSError as error:
    safe(error)
