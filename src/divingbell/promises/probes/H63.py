# mypy: ignore-errors
# Displays that carry next to nothing, without end.
from preamble import frame, tether

line = tether()
packed = frame(b'{"event":"display","parts":[["text/plain",1]]}', b"x") * 1000
while True:
    line.sendall(packed)
