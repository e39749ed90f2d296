# mypy: ignore-errors
import os
import sys

from preamble import frame

forged = frame(b'{"event":"call","id":1,"name":"hostile.count"}', b'{"name": "spoofed"}')
forged += frame(b'{"event":"done","cell":%d,"status":"ok"}' % CELL, b'"forged"')  # noqa: F821
forged += frame(b'{"op":"answer","id":1,"ok":true,"kind":"value"}', b'"forged"')
for descriptor in (1, 2):
    os.write(descriptor, forged)
sys.stdout.buffer.write(forged)
print(forged.decode("latin-1"))
"right"
