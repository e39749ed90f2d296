# mypy: ignore-errors
import os

from preamble import judge

with open("/proc/net/dev") as file:
    names = [line.split(":")[0].strip() for line in file if ":" in line]
judge([name for name in names if name != "lo"], "network interfaces:")
if os.path.exists("/etc/resolv.conf"):
    with open("/etc/resolv.conf") as file:
        judge([line for line in file if "nameserver" in line], "name servers of the host:")
for path in ("/proc/net/route", "/proc/net/ipv6_route", "/proc/net/tcp", "/proc/net/udp"):
    if os.path.exists(path):
        with open(path) as file:
            lines = [line for line in file.read().splitlines() if "Iface" not in line]
            lines = [line for line in lines if "local_address" not in line and " lo" not in line]
        judge(lines, f"{path}:")
