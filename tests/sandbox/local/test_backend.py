"""Who outlives whom: the zygote may die, the host may be killed, and nothing is left behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, SandboxUnavailable
from divingbell.host import cgroups, kernel
from divingbell.sandbox.local import backend
from tests.waiting import until

HOST = """
import asyncio, json, sys
from divingbell import Divingbell
async def main():
    async with Divingbell(pool=1, **json.loads(sys.argv[1])) as bell:
        async with bell.session("a") as a, bell.session("b") as b:
            await a.run("import subprocess; subprocess.Popen(['sleep', '1000'])")
            pids = [session._handle.sandbox.pid for session in (a, b)]
            print(json.dumps([bell._backend.zygote.pid, *pids]), flush=True)
            await b.run("import time; time.sleep(1000)", timeout=1000)
asyncio.run(main())
"""


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def _tree(pid: int) -> list[int]:
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [pid, *(found for child in below for found in _tree(int(child)))]


def _groups() -> set[str]:
    """The control groups of Divingbell on this machine."""
    walk = os.walk("/sys/fs/cgroup")  # which passes over what goes away meanwhile
    return {f"{top}/{name}" for top, below, _ in walk for name in below if "divingbell-" in name}


def _mounts() -> int:
    return len(Path("/proc/self/mountinfo").read_text().splitlines())


def _start_host(settings: dict[str, Any]) -> tuple[subprocess.Popen[str], list[int]]:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(settings)], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    return host, json.loads(host.stdout.readline())


async def test_living_sessions_outlive_the_zygote_and_new_ones_get_another() -> None:
    async with Divingbell(pool=0) as bell, bell.session("old") as old:
        await old.run("x = 1")
        zygote = bell._backend.zygote  # type: ignore[union-attr]
        first = zygote.pid
        os.kill(first, signal.SIGKILL)
        assert (await old.run("x")).value == 1
        async with bell.session("new") as new:
            assert (await new.run("1 + 1")).value == 2
        assert zygote.pid != first
        result = await old.run("import os; os._exit(1)")
        assert result.status == "killed"
        assert (await old.run("2")).value == 2


async def test_a_zygote_that_dies_while_sessions_are_opened_is_started_again() -> None:
    async with Divingbell(pool=0) as bell:

        async def use(number: int) -> object:
            async with bell.session() as session:
                return (await session.run(f"{number}")).value

        users = [asyncio.create_task(use(i)) for i in range(8)]
        await asyncio.sleep(0.02)  # they are somewhere on their way
        os.kill(bell._backend.zygote.pid, signal.SIGKILL)  # type: ignore[union-attr]
        assert await asyncio.gather(*users) == list(range(8))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_sessions_die_with_the_host_however_it_ends(number: signal.Signals) -> None:
    host, pids = await asyncio.to_thread(_start_host, {})
    everyone = [pid for top in pids for pid in _tree(top)]
    assert len(everyone) >= 6
    host.send_signal(number)
    await asyncio.to_thread(host.wait)
    if host.stdout is not None:
        host.stdout.close()
    await until(lambda: not any(_alive(pid) for pid in everyone), "every session dies")


async def test_what_a_killed_host_leaves_is_removed_at_the_next_start(tmp_path: Path) -> None:
    before = _groups()
    host, pids = await asyncio.to_thread(_start_host, {"workspace": str(tmp_path)})
    host.kill()
    await asyncio.to_thread(host.wait)
    if host.stdout is not None:
        host.stdout.close()
    await until(lambda: not any(_alive(pid) for pid in pids), "every session dies")
    assert list(tmp_path.iterdir())
    async with Divingbell(pool=0, workspace=str(tmp_path)) as bell:
        left = {name for name in _groups() - before if f"divingbell-{host.pid}-" in name}
        assert not left
        assert len(list(tmp_path.iterdir())) == 1
        assert (await bell.execute("1")).value == 1
    assert not list(tmp_path.iterdir())


async def test_nothing_is_left_of_closed_sessions() -> None:
    groups = _groups()
    async with Divingbell(pool=2) as bell:
        await bell.execute("1")
        pool = bell._engine._pool  # type: ignore[union-attr]
        await until(lambda: len(pool) == pool.wanted, "the pool is full again")
        descriptors, mounts = len(os.listdir("/proc/self/fd")), _mounts()
        children = set(_tree(os.getpid()))
        for _ in range(20):
            async with bell.session() as session:
                await session.run("import subprocess; subprocess.Popen(['sleep', '1000'])")
                await session.files.put("x", b"x")
        own = f"divingbell-{os.getpid()}-"
        await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 2, "descriptors")
        await until(lambda: len(set(_tree(os.getpid())) - children) <= 6, "processes")
        assert _mounts() == mounts
    await until(lambda: not any(own in name for name in _groups() - groups), "control groups")


async def test_two_hosts_on_one_machine_use_different_uids() -> None:
    if os.geteuid() != 0:
        pytest.fail("the tests run as root; the self-check runs once more as an ordinary user")
    async with (
        Divingbell(pool=0) as one,
        Divingbell(pool=0) as other,
        one.session() as a,
        other.session() as b,
        one.session() as c,
    ):
        pids = [_tree(session._handle.sandbox.pid)[1] for session in (a, b, c)]  # type: ignore[attr-defined]
        owners = {os.stat(f"/proc/{pid}").st_uid for pid in pids}
    assert len(owners) == 3
    assert all(owner >= 1_900_000_000 for owner in owners)


def test_other_systems_and_processors_are_refused_with_the_way_out() -> None:
    for system, machine in (("darwin", "arm64"), ("win32", "AMD64")):
        with pytest.raises(SandboxUnavailable, match="virtual machine"):
            backend.check_platform(system, machine)
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        backend.check_platform("linux", "riscv64")
    for machine in ("x86_64", "aarch64"):
        backend.check_platform("linux", machine)


TRY = """
import asyncio
from divingbell import Divingbell, SandboxUnavailable
async def main():
    try:
        async with Divingbell(pool=0) as bell:
            print(await bell.execute("1"))
    except SandboxUnavailable as error:
        print("REFUSED", error)
asyncio.run(main())
"""
WITHOUT_NAMESPACES = """
import platform
from divingbell_inside import kernel, seccomp
kernel.forbid_new_privileges()
seccomp.install(seccomp.build(platform.machine()))  # which refuses new namespaces
"""


async def test_when_the_kernel_refuses_nothing_runs_and_the_message_says_what_to_do() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WITHOUT_NAMESPACES + TRY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert out.decode().startswith("REFUSED"), (out, err)
    assert "divingbell doctor" in out.decode()


async def test_a_masked_proc_as_in_a_container_is_named() -> None:
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--mount", "sh", "-c"),
        'mount --bind /dev/null /proc/kmsg && exec "$@"',
        *("sh", sys.executable, "-c", TRY),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert out.decode().startswith("REFUSED"), (out, err)
    assert "mask" in out.decode() and "systempaths=unconfined" in out.decode()


def test_names_of_the_dead_are_told_from_those_of_the_living() -> None:
    assert not cgroups.owner_is_gone(cgroups.own_name())
    assert cgroups.owner_is_gone(f"divingbell-{os.getpid()}-1")
    assert cgroups.owner_is_gone("divingbell-999999999-1")
    assert not cgroups.owner_is_gone("divingbell-something-else")


async def test_walls_are_checked_before_anything_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path))  # where no profile is
    monkeypatch.setattr(kernel, "why_not", lambda: "user namespaces are off; turn them on")
    steps: list[str] = []
    with pytest.raises(SandboxUnavailable, match="user namespaces are off; turn them on"):
        await Divingbell(pool=0, progress=steps.append).__aenter__()
    assert steps == []
    assert not (tmp_path / "profiles").exists()


async def test_control_groups_that_are_required_are_looked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> cgroups.Hierarchy:
        raise cgroups.NoCgroups("there are none")

    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path))
    monkeypatch.setattr(cgroups, "find", none)
    with pytest.raises(SandboxUnavailable, match="there are none"):
        await Divingbell(pool=0, cgroups="require").__aenter__()
    assert not (tmp_path / "profiles").exists()


LEFT_OPEN = """
import asyncio, json, sys
from divingbell import Divingbell
kept = []
async def main():
    bell = Divingbell(pool=1, preload=(), workspace=sys.argv[1])
    await bell.__aenter__()
    kept.append(await bell.open("a"))
    await kept[0].run("open('file', 'w').write('x')")
    print(json.dumps([bell._backend.zygote.pid, kept[0]._handle.sandbox.pid]))
asyncio.run(main())
"""


async def test_a_program_that_leaves_it_open_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEFT_OPEN, str(tmp_path / "work")]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [line] = done.stderr.splitlines()
    assert "use `async with Divingbell() as bell`" in line
    pids = json.loads(done.stdout)
    await until(lambda: not any(_alive(pid) for pid in pids), "all processes have ended")
    assert list((tmp_path / "work").iterdir()) == []
