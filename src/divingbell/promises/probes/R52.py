# mypy: ignore-errors
import socket

kept = []
for _ in range(400):
    one, other = socket.socketpair()
    one.setblocking(False)
    kept += [one, other]
    try:
        while True:
            one.send(b"x" * 65536)
    except BlockingIOError:
        continue
print("SAFE only as many as there may be open files")
