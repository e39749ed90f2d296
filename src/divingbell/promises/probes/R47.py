# mypy: ignore-errors
import mmap

SIZE = 1 << 30
shared = mmap.mmap(-1, SIZE)
for at in range(0, SIZE, 4096):
    shared[at] = 1
print("UNSAFE shared anonymous memory took 1 GB")
