# mypy: ignore-errors
import subprocess
import sys

from preamble import judge

for command in (
    [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "six", "-d", "/tmp/p"],
    ["pip", "install", "six"],
    ["curl", "-sS", "-m", "3", "https://192.0.2.1/simple/six/"],
):
    try:
        code = subprocess.run(command, capture_output=True, timeout=20).returncode
    except (FileNotFoundError, subprocess.TimeoutExpired):
        code = 127
    judge(code == 0, f"{command[0]} answered {code}:")
