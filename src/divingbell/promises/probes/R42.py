# mypy: ignore-errors
import os

from preamble import safe, unsafe

try:
    unsafe(f"waited for a process that is not ours: {os.wait()}")
except ChildProcessError:
    safe("no child")
