"""What Docker is asked for."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, Session
from divingbell.errors import SandboxUnavailable
from divingbell.sandbox.contained import root
from divingbell.sandbox.contained.sandbox import ContainedSandbox
from divingbell.sandbox.docker import backend, daemon, images
from divingbell.sandbox.docker.backend import DockerBackend
from tests.waiting import until
from tests.walls import DOCKER, need


@pytest.fixture(scope="module")
async def walled() -> AsyncIterator[Divingbell]:
    need(DOCKER)
    async with Divingbell(backend="docker", pool=0) as bell:
        yield bell


def _docker(*arguments: str) -> bool:
    return subprocess.run(["docker", *arguments], capture_output=True).returncode == 0


def _inspect(session: Session) -> dict[str, Any]:
    sandbox = session._handle._interpreter.sandbox
    assert isinstance(sandbox, ContainedSandbox)
    answer = subprocess.run(["docker", "inspect", sandbox.name], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout)[0]
    return found


async def test_the_container_has_all_of_its_walls(walled: Divingbell) -> None:
    async with walled.session(memory="256MB", processes=50, cores=0.5) as session:
        found = _inspect(session)
    host, config = found["HostConfig"], found["Config"]
    assert host["NetworkMode"] == "none" and list(found["NetworkSettings"]["Networks"]) == ["none"]
    assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["CapAdd"]
    assert not host["Privileged"]
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert any(option.startswith("seccomp={") for option in host["SecurityOpt"])
    uid, gid = config["User"].split(":")
    assert uid == gid and int(uid) > 1000
    assert host["Memory"] == host["MemorySwap"] == (256 + 80) << 20
    assert host["PidsLimit"] == 53 and host["CpuQuota"] == 50_000
    assert set(host["Tmpfs"]) >= {"/tmp", "/workspace"}
    assert not host["Binds"] and all(mount["ReadOnly"] for mount in host["Mounts"])
    assert "org.divingbell.host" in config["Labels"]


async def test_nothing_of_the_hosts_network_is_told(walled: Divingbell) -> None:
    async with walled.session() as session:
        code = "[open(f'/etc/{name}').read() for name in ('resolv.conf', 'hosts', 'hostname')]"
        resolver, hosts, name = (await session.run(code)).value
    assert resolver == "" and name == "divingbell\n"
    assert hosts == "127.0.0.1 localhost divingbell\n::1 localhost\n"


async def test_a_folder_can_be_shown_twice(tmp_path: Path) -> None:
    need(DOCKER)
    tmp_path.chmod(0o755)
    (tmp_path / "here").touch()
    mounts = {"/one": str(tmp_path), "/two": str(tmp_path)}
    async with (
        Divingbell(backend="docker", pool=0, preload=(), mounts=mounts) as bell,
        bell.session() as session,
    ):
        code = "import os; [os.path.exists(f'/{name}/here') for name in ('one', 'two')]"
        assert (await session.run(code)).value == [True, True]


def _containers() -> set[str]:
    """Those of this process; another may run tests of its own."""
    command = ["docker", "ps", "--all", "--quiet", f"--filter=name=divingbell-{os.getpid()}-"]
    answer = subprocess.run(command, capture_output=True, check=True)
    return set(answer.stdout.decode().split())


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.3, 0.6])
async def test_a_cancelled_session_leaves_no_container(walled: Divingbell, delay: float) -> None:
    before = _containers()
    opening = asyncio.create_task(walled.open())
    await asyncio.sleep(delay)  # it is somewhere on its way
    opening.cancel()
    await asyncio.wait({opening})
    if not opening.cancelled():
        await walled.release(await opening)
    assert _containers() <= before


async def test_closing_while_the_pool_fills_leaves_no_container() -> None:
    need(DOCKER)
    before = _containers()
    async with Divingbell(backend="docker", pool=3, preload=()):
        await until(lambda: _containers() - before, "the first container of the pool")
    assert _containers() <= before


async def test_what_is_called_runsc_must_be_gvisor(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Docker's runtime of that name were another one."""
    need(DOCKER)
    walls = DockerBackend._walls

    def fake(self: DockerBackend, *arguments: Any) -> dict[str, Any]:
        return {**walls(self, *arguments), "runtime": "runc"}

    monkeypatch.setattr(DockerBackend, "_walls", fake)
    monkeypatch.setattr(daemon, "check", lambda client, runtime: client.info())
    with pytest.raises(SandboxUnavailable, match="is not gVisor"):
        async with Divingbell(
            backend="docker-runsc", backend_minimum="docker-runsc", pool=0
        ) as bell:
            await bell.open()


async def test_a_silent_daemon_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "ASK_TIMEOUT", 0.5)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "docker.sock"))
        silent.listen()
        with pytest.raises(SandboxUnavailable, match="does not answer"):
            async with Divingbell(backend="docker", pool=0):
                pass


async def test_a_daemon_that_falls_silent_does_not_hold_up_the_closing(
    walled: Divingbell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()
    monkeypatch.setattr(backend, "REMOVAL_TIMEOUT", 0.2)
    removing = backend._remove_container

    def silent(*arguments: Any) -> None:
        released.wait(60)
        removing(*arguments)

    before = _containers()
    session = await walled.open()
    with monkeypatch.context() as patch:
        patch.setattr(backend, "_remove_container", silent)
        await walled.release(session)
    assert "could not be removed (no answer)" in caplog.text
    released.set()
    await until(lambda: _containers() <= before, "the container is removed after all")


def test_a_root_that_can_not_be_packed_is_no_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(DOCKER)
    program = tmp_path / "bin" / "tar"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n/bin/tar --create --files-from /dev/null\nexit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    half = root.Root(tmp_path, "half-packed")
    client = daemon.connect()
    try:
        with pytest.raises(SandboxUnavailable, match="tar ended with 2"):
            images.provide(client, half, lambda line: None)
        assert "half-packed" not in images.versions(client)
    finally:
        client.close()


async def test_two_sessions_have_two_uids(walled: Divingbell) -> None:
    async with walled.session() as one, walled.session() as other:
        code = "import os, pwd; (os.getuid(), pwd.getpwuid(os.getuid()).pw_name)"
        first, second = (await one.run(code)).value, (await other.run(code)).value
    assert first[0] != second[0] and first[1] == second[1] == "diver"


async def test_memory_at_its_limit_costs_the_interpreter_and_not_the_files(
    walled: Divingbell,
) -> None:
    async with walled.session(memory="64MB") as session:
        await session.files.put("kept", b"kept")
        code = "import mmap\nheld = [mmap.mmap(-1, 1 << 20) for _ in range(400)]\n"
        code += "for each in held: each.write(b'x' * (1 << 20))"
        result = await session.run(code)
        assert result.status == "limit" and result.limit == "memory", result
        assert await session.files.get("kept") == b"kept"
        assert (await session.run("1 + 1")).value == 2


async def test_a_paused_container_is_removed_all_the_same(walled: Divingbell) -> None:
    async with walled.session() as session:
        found = _inspect(session)
        assert _docker("pause", found["Id"])
    assert not _docker("inspect", found["Id"])


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.environ.get("CI_OWNS_DOCKER"),
    reason="ends the daemon: for a machine that has it for the tests alone",
)
async def test_a_daemon_that_restarts_costs_the_sandbox_and_not_the_session() -> None:
    async with Divingbell(backend="docker", pool=0) as bell, bell.session() as session:
        await session.run("x = 1")
        _restart_daemon()
        result = await session.run("x")
        if result.status == "ok":  # it was told of its end only now
            result = await session.run("x")
        assert result.status in ("killed", "error")
        assert (await session.run("1 + 1")).value == 2


def _restart_daemon() -> None:
    pid = int(Path("/var/run/docker.pid").read_text())
    command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.1)
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["setsid", "--fork", *command], **silent, check=True)  # type: ignore[call-overload]
    while time.monotonic() < deadline:
        if _docker("info"):
            return
        time.sleep(0.2)
    raise AssertionError("the daemon did not come back")
