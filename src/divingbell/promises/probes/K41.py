# mypy: ignore-errors
import os

from preamble import denied, refused

refused("userfaultfd", 0)
refused("userfaultfd", 1)
denied(lambda: os.open("/dev/userfaultfd", os.O_RDWR), "/dev/userfaultfd")
