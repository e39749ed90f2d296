# mypy: ignore-errors
with open("/dev/shm/fill", "wb") as file:
    for _ in range(1 << 16):
        file.write(b"x" * (1 << 20))
print("UNSAFE 64 GB were written to /dev/shm")
