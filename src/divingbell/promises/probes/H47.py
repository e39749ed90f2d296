# mypy: ignore-errors
# Displays by the hundred thousand that carry next to nothing, and one that lies about its size.
import json

from preamble import frame, tether

line = tether()
empty = frame(json.dumps({"event": "display", "parts": [["a/b", 0]] * 50_000}).encode())
for _ in range(25):
    line.sendall(empty)
tiny = frame(b'{"event":"display","parts":[["text/plain",1]]}', b"x") * 1000
for _ in range(30):
    line.sendall(tiny)
