# mypy: ignore-errors
import struct

from preamble import refused

CLONE_NEWUSER = 0x10000000
refused("clone3", struct.pack("11Q", CLONE_NEWUSER, *[0] * 10), 88)
refused("clone3", 0, 0)
