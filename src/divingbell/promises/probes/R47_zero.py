# mypy: ignore-errors
import mmap
import os

SIZE = 1 << 30
shared = mmap.mmap(os.open("/dev/zero", os.O_RDWR), SIZE)
for at in range(0, SIZE, 4096):
    shared[at] = 1
print("UNSAFE a shared mapping of /dev/zero took 1 GB")
