# mypy: ignore-errors
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
for _ in range(500):  # 2 MB of the kernel's memory each
    if libc.semget(0, 32000, 0o1600) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
print("UNSAFE semaphores took 1 GB")
