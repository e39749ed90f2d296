# mypy: ignore-errors
import sys

while True:
    sys.stderr.write("x" * (1 << 18))
