# mypy: ignore-errors
import fcntl
import os
import struct

os.makedirs("x/y", exist_ok=True)
with open("x/y/file", "w") as file:
    file.write("kept?")
    try:
        fcntl.ioctl(file, 0x40086602, struct.pack("l", 0x10))  # FS_IOC_SETFLAGS, immutable
    except OSError as error:
        print("chattr:", error)
os.chmod("x/y", 0)
os.chmod("x", 0)
print("locked")
