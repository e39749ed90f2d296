# mypy: ignore-errors
import os

from preamble import judge, opens

with open("/proc/self/uid_map") as file:
    mapped = file.read().split()
judge(os.getuid() == 0, f"uid {os.getuid()}, map {mapped}")
# The map looks the same for root and for others. These open only for the host's uid 0.
paths = ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches")
judge([path for path in paths if opens(path, os.O_WRONLY)], "open for writing:")
