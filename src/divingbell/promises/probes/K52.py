# mypy: ignore-errors
import os

from preamble import refused

folder = os.open("/usr", os.O_RDONLY | os.O_CLOEXEC)
refused("syncfs", folder)
refused("sync", 0)
os.close(folder)
