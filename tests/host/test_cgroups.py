"""Control groups: version 1 for real; of version 2 what this machine's kernel lets us try."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from divingbell import Limits
from divingbell.host import cgroups

UNIFIED = next(
    (path for path in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
     if (path / "cgroup.procs").exists() and (path / "cgroup.controllers").exists()),
    None,
)  # fmt: skip


def _enter(group: cgroups.Group, pid: int) -> None:
    for entrance in group.entrances():
        os.write(entrance, str(pid).encode())
        os.close(entrance)


def test_a_group_of_version_1_has_its_limits_and_goes_away() -> None:
    hierarchy = cgroups.find()
    if hierarchy.version != 1:
        hierarchy.close()
        pytest.fail("this test was written for a machine with version 1; run the one below")
    limits = Limits(memory=64 << 20, processes=10, cores=0.5)
    group = hierarchy.create("test", limits)
    child = subprocess.Popen(["sleep", "100"])
    try:
        _enter(group, child.pid)
        own = Path(f"/proc/{child.pid}/cgroup").read_text()
        assert own.count("/test\n") >= 4
        folder = next(Path(f"/sys/fs/cgroup/memory/{line.split(':')[2][1:]}")
                      for line in own.splitlines() if ":memory:" in line)  # fmt: skip
        assert int((folder / "memory.limit_in_bytes").read_text()) == 64 << 20
        used = group.consumption()
        assert used.cpu_seconds >= 0 and used.memory is not None and used.memory_kills == 0
    finally:
        child.kill()
        child.wait()
        group.remove()
        hierarchy.close()
    assert not folder.exists() and not folder.parent.exists()


def test_a_group_of_version_2_places_counts_and_goes_away() -> None:
    """On the unified hierarchy without controllers: placement, cpu.stat, removal."""
    assert UNIFIED is not None, "no unified hierarchy is mounted here"
    folder = UNIFIED / f"divingbell-{os.getpid()}-test"
    folder.mkdir()
    group = cgroups.GroupV2(folder)
    child = subprocess.Popen(["sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"])
    _enter(group, child.pid)
    assert str(folder.name) in Path(f"/proc/{child.pid}/cgroup").read_text()
    child.wait()
    used = group.consumption()
    assert used.cpu_seconds > 0
    assert used.memory_kills == 0 and used.refused_processes == 0
    group.remove()
    assert not folder.exists()


def test_version_2_writes_what_the_documentation_says(tmp_path: Path) -> None:
    """The files of a group of version 2, on a plain folder in the place of the kernel's."""
    point = tmp_path / "cgroup"
    point.mkdir()
    (point / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    (point / "cgroup.subtree_control").write_text("")
    hierarchy = cgroups.HierarchyV2(point)
    assert (point / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    base = next(path for path in point.iterdir() if path.is_dir())
    assert (base / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    folder = base / "session"
    hierarchy.create("session", Limits(memory=64 << 20, processes=10, cores=1.5))
    assert (folder / "memory.max").read_text() == str(64 << 20)
    assert (folder / "pids.max").read_text() == "13"
    assert (folder / "cpu.max").read_text() == "150000 100000"
    for name, text in {
        "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
        "memory.current": "4096\n",
        "memory.peak": "8192\n",
        "memory.events": "low 0\noom 1\noom_kill 2\n",
        "pids.events": "max 3\n",
    }.items():
        (folder / name).write_text(text)
    used = cgroups.GroupV2(folder).consumption()
    assert (used.cpu_seconds, used.memory, used.memory_peak) == (2.5, 4096, 8192)
    assert (used.memory_kills, used.refused_processes) == (2, 3)


def test_version_2_without_its_controllers_says_which_are_missing(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu io")
    with pytest.raises(cgroups.NoCgroups, match="memory, pids"):
        cgroups.HierarchyV2(tmp_path)


def test_without_groups_the_time_of_the_living_is_counted() -> None:
    child = subprocess.Popen(["sh", "-c", "sh -c 'while :; do :; done'"])
    tree = cgroups.ProcessTree([child.pid])
    try:
        while tree.consumption().cpu_seconds < 0.1:
            assert child.poll() is None
    finally:
        for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        child.kill()
        child.wait()
