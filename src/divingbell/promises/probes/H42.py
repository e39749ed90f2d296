# mypy: ignore-errors
from preamble import frame, tether

head = b'{"event":"done","cell":%d,"status":"ok"}' % CELL  # noqa: F821
line = tether()
line.sendall(frame(head, b'"forged"') * 3)
line.sendall(frame(b'{"event":"done","cell":%d,"status":"ok"}' % (CELL + 1), b"1"))  # noqa: F821
line.sendall(frame(b'{"event":"copied","reason":null}'))
line.sendall(frame(b'{"event":"variables","items":[{"name":7},{"name":"x","shape":["y"]},3]}'))
