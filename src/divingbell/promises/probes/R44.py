# mypy: ignore-errors
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
SIZE = 64 << 20
for _ in range(16):
    segment = libc.shmget(0, SIZE, 0o1600)
    if segment < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, SIZE)
print("UNSAFE shared memory took 1 GB")
