# mypy: ignore-errors
import os

from preamble import judge, opens, refused

PATHS = (
    "/proc/kcore", "/dev/mem", "/dev/kmsg", "/dev/port", "/dev/kvm", "/dev/fuse", "/dev/vda",
    "/dev/sda", "/dev/nvme0", "/dev/loop-control", "/dev/net/tun", "/dev/vhost-net", "/dev/tty",
    "/dev/ptmx", "/dev/console", "/sys/kernel/debug", "/proc/kpagecount", "/proc/slabinfo",
    "/proc/vmallocinfo", "/proc/pagetypeinfo",
)  # fmt: skip
judge([path for path in PATHS if opens(path, os.O_RDONLY)], "can be read:")
for path in ("/proc/kmsg", "/proc/kallsyms", "/proc/keys", "/proc/timer_list"):
    try:
        with open(path, "rb") as file:
            judge(file.read(1), f"{path} has content:")
    except OSError as error:
        judge(False, f"{path} {error.strerror}")
refused("syslog", 3, 0, 0)
