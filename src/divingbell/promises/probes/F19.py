# mypy: ignore-errors
import os
import socket

with open("/workspace/of-the-first", "w") as file:
    file.write("SECRET-OF-THE-FIRST")
for folder in ("/tmp", "/dev/shm", os.path.expanduser("~")):
    with open(f"{folder}/of-the-first", "w") as file:
        file.write("SECRET-OF-THE-FIRST")
listening = socket.socket(socket.AF_UNIX)
listening.bind("\0of-the-first")
listening.listen()
print("hidden")
