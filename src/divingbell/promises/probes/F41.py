# mypy: ignore-errors
from preamble import judge

with open("/proc/self/mountinfo") as file:
    lines = [line for line in file if "nosuid" not in line.split()[5]]
judge(lines, "mounts without nosuid:")
