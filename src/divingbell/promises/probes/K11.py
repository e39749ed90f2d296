# mypy: ignore-errors
from preamble import refused

for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    refused("unshare", flag)
    refused("unshare", flag | 0x10000000)
