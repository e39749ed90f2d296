# mypy: ignore-errors
import os
import re

from preamble import judge

found = b""
for name in ("1", str(os.getppid()), "self", *filter(str.isdigit, os.listdir("/proc"))):
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            found += file.read()
    except OSError:
        continue
pattern = rb"(?i)[A-Z_]*(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL)[A-Z_]*="
names = re.findall(pattern, found + "\n".join(f"{name}=" for name in os.environ).encode())
judge(names, "names of secrets in an environment:")
