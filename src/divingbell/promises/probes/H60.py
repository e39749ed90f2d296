# mypy: ignore-errors
# Frames of ten bytes that say nothing, without end.
from preamble import frame, tether

line = tether()
packed = frame(b"{}") * 1000
while True:
    line.sendall(packed)
