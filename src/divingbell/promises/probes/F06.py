# mypy: ignore-errors
import os

os.symlink("/etc/passwd", "link.csv")
os.symlink("/proc/self/environ", "environment.txt")
os.makedirs("sub", exist_ok=True)
os.symlink("/", "sub/root")
os.symlink("/etc", "folder")
print("linked")
