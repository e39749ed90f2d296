# mypy: ignore-errors
import os

from preamble import judge, opens

found = []
for folder, folders, names in os.walk("/proc"):
    if folder == "/proc":
        folders[:] = [name for name in folders if not name.isdigit() and "self" not in name]
    found += [f"{folder}/{name}" for name in names if opens(f"{folder}/{name}", os.O_WRONLY)]
masked = {"/proc/keys", "/proc/kmsg", "/proc/kallsyms", "/proc/timer_list", "/proc/kcore"}
masked |= {"/proc/sched_debug", "/proc/latency_stats"}
judge([path for path in found if path not in masked], "files of the whole machine, writable:")
judge(os.path.exists("/sys/kernel") or os.path.exists("/sys/fs/cgroup"), "/sys is there")
