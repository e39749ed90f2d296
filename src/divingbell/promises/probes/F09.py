# mypy: ignore-errors
import os
import socket

os.mkfifo("pipe.json")
listening = socket.socket(socket.AF_UNIX)
listening.bind("socket.json")
os.makedirs("folder.json", exist_ok=True)
with open("real.json", "w") as file:
    file.write("{}")
print("made")
