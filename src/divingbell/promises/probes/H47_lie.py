# mypy: ignore-errors
from preamble import frame, tether

tether().sendall(frame(b'{"event":"display","parts":[["text/plain",1000000]]}', b"x"))
