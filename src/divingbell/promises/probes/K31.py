# mypy: ignore-errors
import fcntl
import os

from preamble import denied, judge, refused

denied(lambda: os.open("/dev/tty", os.O_RDWR), "/dev/tty")
for request in (0x5412, 0x541C, 0x5423, 0x5412 | 1 << 32):
    refused("ioctl", 0, request, b"x")
    refused("ioctl", 1, request, b"x")
judge([number for number in (0, 1, 2) if os.isatty(number)], "terminals:")
denied(lambda: fcntl.ioctl(1, 0x540E, 0), "TIOCSCTTY")
