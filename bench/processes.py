"""What the kernel tells about processes, read from /proc."""

import os
from collections.abc import Iterable
from pathlib import Path


def children() -> dict[int, list[int]]:
    """The children of every process, by pid."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1]
            except OSError:  # it has just ended
                continue
            found.setdefault(int(parent), []).append(int(name))
    return found


def family(pid: int, of: dict[int, list[int]]) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for member in found:  # grows as it goes
        found += of.get(member, [])
    return found


def naming(words: str) -> list[int]:
    """Those that have these words in their command line, this one excepted."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:  # it has just ended
                continue
            if words.encode() in line:
                found.append(int(name))
    return found


def groups(pid: int) -> str:
    """The control groups of a process; nothing if it has just ended."""
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


def proportional_memory(pids: Iterable[int]) -> int:
    """Bytes of memory, each page divided by how many processes share it (PSS)."""
    return sum(_field(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in pids)


def page_tables(pids: Iterable[int]) -> int:
    """Bytes that the kernel needs to map that memory; PSS leaves them out."""
    return sum(_field(f"/proc/{pid}/status", "VmPTE:") for pid in pids)


def _field(path: str, name: str) -> int:
    for line in Path(path).read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise ValueError(f"{path} has no {name}")
