# mypy: ignore-errors
# Headers of a megabyte that are all brackets, without end. Each closes the line; one is enough.
from preamble import frame, tether

line = tether()
packed = frame(b'{"event":"variables","items":[' + b"[[[[[[]]]]]]," * 80_000 + b"[]]}")
while True:
    line.sendall(packed)
