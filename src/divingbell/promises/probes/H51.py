# mypy: ignore-errors
import struct
import time

from preamble import tether

tether().sendall(struct.pack("!II", 1000, 16 << 20) + b'{"event":')
time.sleep(100)
