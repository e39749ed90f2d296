# mypy: ignore-errors
import os

from preamble import judge, opens

PATHS = (
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger",
    "/proc/sys/kernel/hotplug", "/sys/kernel/uevent_helper", "/proc/sys/vm/panic_on_oom",
    "/proc/sys/fs/binfmt_misc/register", "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/yama/ptrace_scope",
)  # fmt: skip
judge([path for path in PATHS if opens(path, os.O_WRONLY)], "open for writing:")
