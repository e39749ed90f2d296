"""What Docker is asked for."""

import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, Session
from divingbell.sandbox.contained.sandbox import ContainedSandbox
from tests.walls import DOCKER, need


@pytest.fixture(scope="module")
async def walled() -> AsyncIterator[Divingbell]:
    need(DOCKER)
    async with Divingbell(backend="docker", pool=0) as bell:
        yield bell


def _docker(*arguments: str) -> bool:
    return subprocess.run(["docker", *arguments], capture_output=True).returncode == 0


def _inspect(session: Session) -> dict[str, Any]:
    sandbox = session._interpreter.sandbox
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
    assert all(bind.endswith(":ro") for bind in host["Binds"])
    assert "org.divingbell.host" in config["Labels"]


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
