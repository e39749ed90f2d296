# mypy: ignore-errors
import os

null = os.open("/dev/null", os.O_RDWR)
for descriptor in range(256):
    if descriptor != null:
        os.dup2(null, descriptor)
