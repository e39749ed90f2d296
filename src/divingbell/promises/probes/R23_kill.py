# mypy: ignore-errors
import os

os.kill(os.getpid(), 9)
