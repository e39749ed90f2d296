# mypy: ignore-errors
import struct

from preamble import tether

tether().sendall(struct.pack("!II", 0xFFFFFFFF, 0xFFFFFFFF) + b"x" * 4096)
