# mypy: ignore-errors
import os

descriptor = os.memfd_create("bomb")
for _ in range(1024):
    os.write(descriptor, b"x" * (1 << 20))
print("UNSAFE a memfd took 1 GB")
