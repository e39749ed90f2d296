"""The interpreter that sessions are cloned from: packages run in it, and only behind walls."""

import asyncio
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from divingbell import Divingbell, SandboxUnavailable
from divingbell.host import profile
from divingbell.promises.check.packages import write_wheel
from divingbell.sandbox.base import BackendRequest
from divingbell.sandbox.local.backend import LocalBackend
from divingbell.sandbox.local.zygote import Zygote, ZygoteDied
from divingbell.settings.config import Settings

SEEN = """import os, socket, sys; sys.seen = {\
 "interfaces": [name for _, name in socket.if_nameindex()],\
 "uid": open("/proc/self/uid_map").read().split()[1],\
 "home": os.path.exists(%r), "root": sorted(os.listdir("/"))}\n"""


async def test_a_pth_file_runs_behind_the_walls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path / "home"))
    write_wheel(tmp_path, {"trap.pth": SEEN.replace("\\\n", "") % str(tmp_path)})
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    bell = Divingbell(pool=0, preload=[], packages=["divingbell-trap"])
    async with bell, bell.session() as session:
        seen = (await session.run("import sys; sys.seen")).value
    assert seen["interfaces"] == ["lo"]
    assert seen["home"] is False and "workspace" in seen["root"]
    assert os.geteuid() != 0 or seen["uid"] != "0"


async def test_nothing_of_a_profile_is_started_before_there_are_walls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sprung = tmp_path / "sprung"
    planted = tmp_path / "profile" / "bin" / "python"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    planted.chmod(0o755)
    prepared = replace(await asyncio.to_thread(profile.prepare), path=tmp_path / "profile")
    monkeypatch.setattr(profile, "prepare", lambda *_, **__: prepared)
    backend = LocalBackend(BackendRequest(name="local", settings=Settings()))
    try:
        with pytest.raises(SandboxUnavailable):
            await backend.start()
    finally:
        await backend.stop()
    assert not sprung.exists()


LIES = [
    b"{",
    b"[]",
    b"{}",
    b'{"id": "x"}',
    b'{"id": 1, "pid": "x"}',
    b'{"id": 1, "pid": 1e400}',
    b"[" * 60_000,
]


@pytest.mark.parametrize("said", [b'{"id": 1, "pid": 1}', *LIES], ids=range(len(LIES) + 1))
async def test_a_zygote_that_names_a_process_of_others_is_given_up(said: bytes) -> None:
    """The host ends the process that it is told, so it must be a session, which is its child."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    zygote = Zygote(Path("/bin/false"), {}, {}, "")
    zygote._line = ours
    try:
        asked = zygote.ask({}, [])
        theirs.send(said)
        zygote._readable()
        with pytest.raises(ZygoteDied):
            await zygote.answer(asked)
    finally:
        theirs.close()
        await zygote.stop()


async def test_a_stop_waits_for_nothing_where_no_session_is_half_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("divingbell.sandbox.local.zygote.time.sleep", pauses.append)
    bell = Divingbell(pool=0, preload=[])
    async with bell, bell.session() as session:
        assert (await session.run("1 + 1")).value == 2
    assert pauses == []
