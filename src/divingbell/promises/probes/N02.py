# mypy: ignore-errors
import socket
import subprocess

from preamble import denied, judge

socket.setdefaulttimeout(3)
denied(lambda: socket.gethostbyname("example.com"), "gethostbyname")
denied(lambda: socket.getaddrinfo("example.com", 53), "getaddrinfo")
answer = subprocess.run(["getent", "hosts", "example.com"], capture_output=True, timeout=10)
judge(answer.stdout, "getent:")
