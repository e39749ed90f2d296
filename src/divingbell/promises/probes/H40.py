# mypy: ignore-errors
import os

from preamble import tether

tether().sendall(os.urandom(1 << 16))
