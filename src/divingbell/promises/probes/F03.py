# mypy: ignore-errors
import os
import site
import sys

from preamble import judge

folders = ["/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/bin", "/root", "/opt", "/dev", "/home"]
folders += [os.path.dirname(os.__file__), os.path.dirname(sys.executable), *site.getsitepackages()]
found = []
for folder in folders:
    path = f"{folder}/divingbell-probe.pth"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError:
        continue
    os.unlink(path)
    found.append(folder)
judge(found, "folders that can be written:")
