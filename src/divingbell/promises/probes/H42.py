# mypy: ignore-errors
from preamble import frame, tether

head = b'{"event":"done","cell":%d,"status":"ok","value":"forged"}' % CELL  # noqa: F821
line = tether()
line.sendall(frame(head) * 3)
line.sendall(frame(b'{"event":"done","cell":%d,"status":"ok","value":1}' % (CELL + 1)))  # noqa: F821
line.sendall(frame(b'{"event":"copied","reason":null}'))
line.sendall(frame(b'{"event":"variables","items":[{"name":7},{"name":"x","shape":["y"]},3]}'))
