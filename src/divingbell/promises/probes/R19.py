# mypy: ignore-errors
import sys

while True:
    sys.stdout.write("x" * (1 << 20))
