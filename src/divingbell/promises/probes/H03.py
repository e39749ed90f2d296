# mypy: ignore-errors
from preamble import frame, tether

# The host gives the depth. Brackets only, or inside a done frame that is right otherwise.
opened = b"[" * DEPTH  # noqa: F821
closed = b"]" * DEPTH  # noqa: F821
line = tether()
if CLOSED:  # noqa: F821
    head = b'{"event":"done","cell":%d,"status":"ok"}' % CELL  # noqa: F821
    line.sendall(frame(head, opened + closed))
else:
    line.sendall(frame(b'{"x":' + opened))
