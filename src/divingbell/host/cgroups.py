"""Limits by control groups: version 1 and version 2, the same four questions to both.

One group for each host process, named after its pid and start time, and in it one for each
session. Groups whose process is gone are removed at the next start.
"""

import contextlib
import itertools
import os
import signal
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from divingbell.models import Consumption, Limits
from divingbell_inside import layout

PREFIX = "divingbell-"
PERIOD = 100_000
NEEDED = ("memory", "pids", "cpu")
REMOVE_PATIENCE = 2.0
_MOUNTS = Path("/proc/self/mountinfo")
_instances = itertools.count(1)


ADVICE = (
    "as an ordinary user, run `systemd-run --user --scope -p Delegate=yes divingbell …`; "
    "in a container, start it with `--cgroupns=private` and a writable /sys/fs/cgroup"
)
"""How control groups can be had where there are none."""


class NoCgroups(Exception):
    """Raised where control groups can't be used; the message says why."""


class Group(ABC):
    """The control group of one session."""

    def entrances(self) -> list[int]:
        """Return descriptors of files into which a process writes 0 to enter, first of all.

        Entering oneself takes microseconds; being moved by another takes the kernel a lock on
        all processes, and many milliseconds.
        """
        return []

    @abstractmethod
    def consumption(self) -> Consumption: ...

    def processes(self) -> list[int]:
        """Return the pids of the processes that are in it."""
        return []

    def give_way(self, to_all: bool) -> None:
        """Let the processes of all other groups have the processor first, or no longer."""
        return None

    def share(self, part: float) -> None:
        """Weigh this part of what other groups do where they want the same processors."""
        return None

    def kill(self) -> None:
        """End every process in it, and return when they are gone. Blocks."""
        deadline = time.monotonic() + REMOVE_PATIENCE
        while (pids := self.processes()) and time.monotonic() < deadline:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)

    def close(self) -> None:
        """Let go of it, and leave it to whoever has made it."""
        return None

    @abstractmethod
    def remove(self) -> None: ...


class Hierarchy(ABC):
    """The place in the tree of control groups where those of this host process live."""

    version: int

    @abstractmethod
    def create(self, name: str, limits: Limits) -> Group: ...

    @abstractmethod
    def close(self) -> None:
        """Remove it, with what is left of sessions, which have all ended."""


def find() -> Hierarchy:
    """Return the hierarchy to use.

    Raises:
        NoCgroups: none can be written; the message says why.
    """
    mounts = _mounts()
    if all(name in mounts for name in (*NEEDED, "cpuacct")):
        return HierarchyV1({name: mounts[name] for name in (*NEEDED, "cpuacct")})
    if "cgroup2" in mounts:
        return HierarchyV2(mounts["cgroup2"])
    raise NoCgroups("no cgroup file system with memory, pids and cpu is mounted")


def of_process(pid: int) -> Group:
    """Return the group, made by another, that a process is in: to be read, and closed.

    Raises:
        NoCgroups: it can't be seen from here.
    """
    mounts, paths = _mounts(), _paths_of(pid)
    try:
        if all(name in mounts and name in paths for name in (*NEEDED, "cpuacct")):
            names = (*NEEDED, "cpuacct")
            return GroupV1({name: mounts[name] / paths[name].lstrip("/") for name in names})
        if "cgroup2" in mounts and "" in paths:
            return GroupV2(mounts["cgroup2"] / paths[""].lstrip("/"))
    except OSError as error:
        raise NoCgroups(f"{error.filename}: {error.strerror}") from None
    raise NoCgroups(f"the control groups of process {pid} can't be seen here")


def _mounts() -> dict[str, Path]:
    """Return the mount point of each controller of version 1, and of version 2 as "cgroup2"."""
    found: dict[str, Path] = {}
    for line in _MOUNTS.read_text().splitlines():
        left, _, right = line.partition(" - ")
        point = Path(left.split()[4])
        kind, _, options = [*right.split(), "", "", ""][:3]
        if kind == "cgroup2":
            found.setdefault("cgroup2", point)
        elif kind == "cgroup":
            for controller in options.split(","):
                found.setdefault(controller, point)
    return found


def _own_paths() -> dict[str, str]:
    return _paths_of("self")


def _paths_of(process: int | str) -> dict[str, str]:
    """Return the group that a process is in, by controller; "" is version 2."""
    found: dict[str, str] = {}
    try:
        lines = Path(f"/proc/{process}/cgroup").read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _start_time(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def own_name() -> str:
    """Return a new name that no other process has or will have until the next boot."""
    pid = os.getpid()
    return f"{PREFIX}{pid}-{_start_time(pid)}.{next(_instances)}"


def owner_is_gone(name: str) -> bool:
    """Whether the process that a name stands for has ended."""
    pid, _, started = name.removeprefix(PREFIX).partition("-")
    return pid.isdigit() and _start_time(int(pid)) != started.partition(".")[0]


def _remove_leftovers(above: Path) -> None:
    for path in above.glob(f"{PREFIX}*-*"):
        if owner_is_gone(path.name):
            _remove_all(path)


def _remove_all(base: Path) -> None:
    """Remove the group of a process and those of its sessions, which have all ended."""
    # Another host that starts now may be removing the same.
    with contextlib.suppress(FileNotFoundError):
        for below in base.iterdir():
            if below.is_dir():
                _rmdir(below)
    _rmdir(base)


def _rmdir(path: Path) -> None:
    """Remove a group; the kernel answers "busy" until its last process is quite gone."""
    deadline = time.monotonic() + REMOVE_PATIENCE
    while True:
        try:
            path.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                return  # the next start tries again
            time.sleep(0.002)


def _make(path: Path) -> None:
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise NoCgroups(f"{path} can't be made ({error.strerror})") from None


def _write(path: Path, value: object) -> None:
    path.write_text(str(value))


def _entrance(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CLOEXEC)


def _pids(path: Path) -> list[int]:
    try:
        return [int(pid) for pid in path.read_text().split()]
    except OSError:
        return []


def _give_way(path: Path, to_all: bool) -> None:
    """Set `cpu.idle` where that can be: Linux has it from 5.15 on, and a group of Docker's is
    root's to write."""
    with contextlib.suppress(OSError):
        idle = _entrance(path / "cpu.idle")
        try:
            os.write(idle, b"1" if to_all else b"0")
        finally:
            os.close(idle)


def _share(path: Path, weight: int, least: int) -> None:
    """Write a weight where that can be: a group that is idle has none, and one of Docker's is
    root's to write."""
    with contextlib.suppress(OSError):
        entrance = _entrance(path)
        try:
            os.write(entrance, b"%d" % max(weight, least))
        finally:
            os.close(entrance)


_leaf_name = own_name()


class _Reader:
    """A file of the kernel's that is read again and again: opened once."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def number(self) -> int:
        return int(os.pread(self._descriptor, 64, 0))

    def row(self, name: bytes) -> int:
        """Return the number in the row of that name, 0 where there is none."""
        rows = b"\n" + os.pread(self._descriptor, 4096, 0)
        _, _, rest = rows.partition(b"\n%b " % name)
        return int(rest.partition(b"\n")[0] or 0)

    def close(self) -> None:
        # Once only: the number may be someone else's by the second time.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class HierarchyV1(Hierarchy):
    version = 1

    def __init__(self, mounts: dict[str, Path]) -> None:
        own = _own_paths()
        name = own_name()
        self._bases: dict[str, Path] = {}
        for controller, point in mounts.items():
            above = point / own.get(controller, "/").lstrip("/")
            if not os.access(above, os.W_OK):
                raise NoCgroups(f"{above} can't be written by this user")
            _remove_leftovers(above)
            _make(above / name)
            self._bases[controller] = above / name

    def create(self, name: str, limits: Limits) -> Group:
        folders = {controller: base / name for controller, base in self._bases.items()}
        try:
            return self._fill(folders, limits)
        except OSError:
            for folder in set(folders.values()):
                _rmdir(folder)
            raise

    @staticmethod
    def _fill(folders: dict[str, Path], limits: Limits) -> Group:
        for folder in set(folders.values()):
            folder.mkdir()
        memory = folders["memory"]
        _write(memory / "memory.limit_in_bytes", limits.memory)
        swap = memory / "memory.memsw.limit_in_bytes"
        if swap.exists():
            _write(swap, limits.memory)
        _write(folders["pids"] / "pids.max", limits.processes + layout.OWN_PROCESSES)
        quota = folders["cpu"] / "cpu.cfs_quota_us"
        if quota.exists():
            _write(folders["cpu"] / "cpu.cfs_period_us", PERIOD)
            _write(quota, int(limits.cores * PERIOD))
        return GroupV1(folders)

    def close(self) -> None:
        for base in set(self._bases.values()):
            _remove_all(base)


class GroupV1(Group):
    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        self._cpu = _Reader(folders["cpuacct"] / "cpuacct.usage")
        self._memory = _Reader(folders["memory"] / "memory.usage_in_bytes")
        self._peak = _Reader(folders["memory"] / "memory.max_usage_in_bytes")
        self._kills = _Reader(folders["memory"] / "memory.oom_control")
        events = folders["pids"] / "pids.events"
        self._refused = _Reader(events) if events.exists() else None
        self._readers = [self._cpu, self._memory, self._peak, self._kills]
        if self._refused is not None:
            self._readers.append(self._refused)

    def entrances(self) -> list[int]:
        return [_entrance(folder / "tasks") for folder in set(self._folders.values())]

    def processes(self) -> list[int]:
        return _pids(self._folders["pids"] / "cgroup.procs")

    def give_way(self, to_all: bool) -> None:
        _give_way(self._folders["cpu"], to_all)

    def share(self, part: float) -> None:
        _share(self._folders["cpu"] / "cpu.shares", round(1024 * part), 2)

    def consumption(self) -> Consumption:
        return Consumption(
            cpu_seconds=self._cpu.number() / 1e9,
            memory=self._memory.number(),
            memory_peak=self._peak.number(),
            memory_kills=self._kills.row(b"oom_kill"),
            refused_processes=self._refused.row(b"max") if self._refused else 0,
        )

    def close(self) -> None:
        for reader in self._readers:
            reader.close()

    def remove(self) -> None:
        self.close()
        for folder in set(self._folders.values()):
            _rmdir(folder)


class HierarchyV2(Hierarchy):
    """Control groups of version 2, by the kernel's documentation; docs/backends.md says which
    parts were proven."""

    version = 2

    def __init__(self, point: Path) -> None:
        # Root may make groups at the top. Others have only what was delegated to them: the
        # group they are in, which they must leave for a leaf of it, because a group that hands
        # controllers down may hold no process itself.
        above = point if os.geteuid() == 0 else point / _own_paths().get("", "/").lstrip("/")
        if above.name == _leaf_name:
            above = above.parent
        if not os.access(above, os.W_OK):
            raise NoCgroups(
                f"{above} can't be written by this user; "
                "`systemd-run --user --scope -p Delegate=yes …` gives a group that can"
            )
        offered = (above / "cgroup.controllers").read_text().split()
        if missing := [name for name in NEEDED if name not in offered]:
            raise NoCgroups(f"{above} does not offer {', '.join(missing)}")
        _remove_leftovers(above)
        self._base = above / own_name()
        _make(self._base)
        try:
            if os.geteuid() != 0:
                # One leaf for the life of this process. It can't be removed from within; the
                # next start does that.
                _make(above / _leaf_name)
                _write(above / _leaf_name / "cgroup.procs", os.getpid())
            wanted = " ".join(f"+{name}" for name in NEEDED)
            _write(above / "cgroup.subtree_control", wanted)
            _write(self._base / "cgroup.subtree_control", wanted)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._base.rmdir()
            raise NoCgroups(f"controllers can't be handed down ({error.strerror})") from None

    def create(self, name: str, limits: Limits) -> Group:
        folder = self._base / name
        folder.mkdir()
        _write(folder / "memory.max", limits.memory)
        if (folder / "memory.swap.max").exists():
            _write(folder / "memory.swap.max", 0)
        _write(folder / "pids.max", limits.processes + layout.OWN_PROCESSES)
        _write(folder / "cpu.max", f"{int(limits.cores * PERIOD)} {PERIOD}")
        return GroupV2(folder)

    def close(self) -> None:
        _remove_all(self._base)


class GroupV2(Group):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        names = ("cpu.stat", "memory.current", "memory.peak", "memory.events", "pids.events")
        self._readers = {name: _Reader(folder / name) for name in names if (folder / name).exists()}

    def entrances(self) -> list[int]:
        return [_entrance(self._folder / "cgroup.procs")]

    def processes(self) -> list[int]:
        return _pids(self._folder / "cgroup.procs")

    def give_way(self, to_all: bool) -> None:
        _give_way(self._folder, to_all)

    def share(self, part: float) -> None:
        _share(self._folder / "cpu.weight", round(100 * part), 1)

    def _number(self, name: str) -> int | None:
        return self._readers[name].number() if name in self._readers else None

    def _row(self, name: str, row: bytes) -> int:
        return self._readers[name].row(row) if name in self._readers else 0

    def consumption(self) -> Consumption:
        return Consumption(
            cpu_seconds=self._row("cpu.stat", b"usage_usec") / 1e6,
            memory=self._number("memory.current"),
            memory_peak=self._number("memory.peak"),
            memory_kills=self._row("memory.events", b"oom_kill"),
            refused_processes=self._row("pids.events", b"max"),
        )

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()

    def remove(self) -> None:
        self.close()
        _rmdir(self._folder)


@dataclass(frozen=True, slots=True)
class ProcessTree(Group):
    """The processor time of living processes, from /proc: for machines without control groups."""

    pids: list[int]

    def consumption(self) -> Consumption:
        ticks = 0
        waiting = list(self.pids)
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                # utime, stime, and what the children that it has waited for have used
                ticks += sum(int(fields[index]) for index in (11, 12, 13, 14))
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    waiting += [int(child) for child in (thread / "children").read_text().split()]
        return Consumption(cpu_seconds=ticks / os.sysconf("SC_CLK_TCK"))

    def remove(self) -> None:
        return None
