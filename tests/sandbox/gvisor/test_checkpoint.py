"""Sessions that are restored from a checkpoint, and what happens where they can't be."""

import asyncio
import json
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.models import Limits
from divingbell.sandbox.contained import root
from divingbell.sandbox.contained.root import Root
from divingbell.sandbox.gvisor import backend, bundle, checkpoint, findings
from divingbell.sandbox.gvisor.runsc import Runsc
from divingbell.settings.config import Settings
from tests.walls import GVISOR, need


@pytest.fixture
def image(tmp_path: Path) -> Root:
    (tmp_path / "image/files").mkdir(parents=True)
    return Root(tmp_path / "image/files", "image")


@pytest.fixture
def program(tmp_path: Path) -> Runsc:
    (tmp_path / "runsc").write_text("")
    return Runsc(str(tmp_path / "runsc"), "release-1", "ptrace", ("--platform=ptrace",))


def _make(image: Root, program: Runsc, key: str, refusal: str = "") -> None:
    with checkpoint.making(image, key) as folder:
        assert folder is not None
        (folder / "checkpoint.img").write_bytes(b"saved")
        checkpoint.keep(image, key, program, refusal)


# What is kept


def test_only_where_things_are_mounted_from_may_differ(program: Runsc) -> None:
    def key(folder: str = "/a", disk: int = 1 << 20, shown: str = "/x", preload: str = "os") -> str:
        limits = Limits(disk=disk)
        description = bundle.describe(Path("/root"), Path(folder), "", limits, {shown: "/outside"})
        return checkpoint.key_of(program, description, [preload])

    assert key() == key(folder="/b")
    assert len({key(), key(disk=2 << 20), key(shown="/y"), key(preload="sys")}) == 4
    before = key()
    Path(program.program).write_text("another")
    assert key() != before


def test_one_that_is_kept_is_found_and_closed_to_others(image: Root, program: Runsc) -> None:
    assert checkpoint.find(image, "one") is None
    _make(image, program, "one")
    found = checkpoint.find(image, "one")
    assert found is not None and not found.refusal
    assert (found.path / "checkpoint.img").read_bytes() == b"saved"
    assert found.path.parent.stat().st_mode & 0o077 == 0


def test_what_is_not_kept_leaves_nothing(image: Root) -> None:
    with pytest.raises(RuntimeError), checkpoint.making(image, "one"):
        raise RuntimeError
    assert checkpoint.find(image, "one") is None
    assert not list(image.path.parent.glob("checkpoints/*building*"))


def test_two_do_not_make_one_at_once(image: Root, program: Runsc) -> None:
    with checkpoint.making(image, "one") as first, checkpoint.making(image, "one") as second:
        assert first is not None and second is None
        checkpoint.keep(image, "one", program)
    with checkpoint.making(image, "one") as third:
        assert third is None


def test_a_refusal_counts_for_a_while(image: Root, program: Runsc) -> None:
    _make(image, program, "one", "runsc checkpoint: not today")
    found = checkpoint.find(image, "one")
    assert found is not None and found.refusal == "runsc checkpoint: not today"
    assert not (found.path / "checkpoint.img").exists()
    past = time.time() - checkpoint.REFUSAL_COUNTS - 1
    os.utime(found.path / checkpoint.MARKER, (past, past))
    assert checkpoint.find(image, "one") is None


def test_the_oldest_go_when_there_are_many(image: Root, program: Runsc) -> None:
    for number in range(checkpoint.KEPT + 2):
        _make(image, program, str(number))
        marker = image.path.parent / checkpoint.FOLDER / str(number) / checkpoint.MARKER
        os.utime(marker, (number, number))
    assert checkpoint.find(image, "0") is None
    assert len(checkpoint.every(image)) == checkpoint.KEPT


def test_those_of_another_runsc_are_stale_and_refusals_too(image: Root, program: Runsc) -> None:
    _make(image, program, "refused", "why")
    _make(image, program, "other")
    Path(program.program).write_text("another")
    _make(image, program, "current")
    assert {each.path.name for each in checkpoint.stale(image, program)} == {"refused", "other"}


def test_doctor_says_what_runsc_said(
    image: Root, program: Runsc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.sandbox.gvisor.runsc.find", lambda platform: program)
    monkeypatch.setattr("divingbell.host.profile.find", lambda packages: object())
    monkeypatch.setattr(root, "find", lambda prepared: image)
    assert "not tried yet" in findings.restore(Settings()).detail
    _make(image, program, "one", "runsc checkpoint: not today")
    refused = findings.restore(Settings())
    assert refused.state == "warn" and "runsc checkpoint: not today" in refused.detail
    checkpoint.remove(checkpoint.every(image)[0])
    _make(image, program, "one")
    assert findings.restore(Settings()).state == "ok"


# What is restored


@pytest.fixture(scope="module")
async def walled() -> AsyncIterator[Divingbell]:
    need(GVISOR)
    async with Divingbell(backend="gvisor", pool=0) as bell:
        yield bell


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How each container was started."""
    seen: list[str] = []
    launch = backend._Made.launch

    def watched(self: Any, folder: Path, saved: Path | None) -> None:
        seen.append("cold" if saved is None else "restored")
        launch(self, folder, saved)

    monkeypatch.setattr(backend._Made, "launch", watched)
    return seen


NUMBERS = """
import os, random, secrets, ssl, uuid, numpy
[random.random(), float(numpy.random.rand()), float(numpy.random.default_rng().random()),
 os.urandom(8).hex(), secrets.token_hex(8), ssl.RAND_bytes(8).hex(), str(uuid.uuid1()),
 str(uuid.uuid4())]
"""


async def test_sessions_restored_at_once_have_no_number_in_common(
    walled: Divingbell, launched: list[str]
) -> None:
    async def numbers() -> list[Any]:
        async with walled.session() as session:
            value: list[Any] = (await session.run(NUMBERS)).value
            return value

    first, second = await asyncio.gather(numbers(), numbers())
    assert launched == ["restored", "restored"]
    assert len(first) == 8 and not set(first) & set(second)


async def test_a_restored_session_has_its_packages_the_time_and_no_token(
    walled: Divingbell, launched: list[str]
) -> None:
    code = """
import os, sys, time
before = time.monotonic(); time.sleep(0.05); slept = time.monotonic() - before
environment = open("/proc/self/environ").read() + repr(dict(os.environ))
["pandas" in sys.modules, time.time(), slept, os.listdir("/run/divingbell"), environment]
"""
    async with walled.session() as session:
        loaded, now, slept, beside_the_socket, environment = (await session.run(code)).value
    assert launched == ["restored"] and loaded
    assert abs(now - time.time()) < 30 and 0.05 <= slept < 5
    assert beside_the_socket == [] and "TOKEN" not in environment


async def test_limits_that_a_checkpoint_has_not_are_kept_by_a_cold_start(
    walled: Divingbell, launched: list[str]
) -> None:
    async with walled.session(disk="16MB") as session:
        result = await session.run("open('full', 'wb').write(bytes(20 << 20))")
    assert launched == ["cold"]
    assert result.status == "limit" and result.limit == "disk"


async def test_a_checkpoint_that_is_broken_costs_time_and_no_session(
    walled: Divingbell,
    launched: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "checkpoint.img").write_bytes(b"no checkpoint")
    broken = checkpoint.Checkpoint(tmp_path, "runsc", "", time.time())
    monkeypatch.setattr(checkpoint, "find", lambda image, key: broken)
    with caplog.at_level(logging.WARNING, "divingbell"):
        async with walled.session() as session:
            assert (await session.run("1 + 1")).value == 2
    assert launched == ["restored", "cold"]
    said = json.loads((tmp_path / checkpoint.MARKER).read_bytes())["refusal"]
    assert said.startswith("runsc restore: ") and said in caplog.text


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checkpoints of this test alone."""
    need(GVISOR)
    monkeypatch.setattr(checkpoint, "FOLDER", f"checkpoints-{tmp_path.name}")
    yield
    for left in root.folder().glob(f"*/{checkpoint.FOLDER}"):
        shutil.rmtree(left)


async def test_a_restored_session_has_the_mounts_of_now(
    tmp_path: Path, launched: list[str], apart: None
) -> None:
    for name in ("then", "now"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
        (tmp_path / name / "file").write_text(name)
        mounts = {"/data": str(tmp_path / name)}
        bell = Divingbell(backend="gvisor", pool=0, mounts=mounts)
        async with bell, bell.session() as session:
            assert (await session.run("open('/data/file').read()")).value == name
            refused = await session.run("open('/data/more', 'w')")
            assert "Read-only file system" in str(refused.error)
    # One to be saved, one to try it, and the two sessions.
    assert launched == ["cold", "restored", "restored", "restored"]


async def test_a_runsc_that_saves_nothing_is_quoted_and_sessions_start_cold(
    launched: list[str], monkeypatch: pytest.MonkeyPatch, apart: None
) -> None:
    real = Runsc.run

    def run(self: Runsc, state: Path, command: Any, **options: Any) -> None:
        if command[0] == "checkpoint":
            command = [*command[:-1], "no-such-container"]
        real(self, state, command, **options)

    monkeypatch.setattr(Runsc, "run", run)
    async with Divingbell(backend="gvisor", pool=0) as bell:
        async with bell.session() as session:
            assert (await session.run("1 + 1")).value == 2
        assert isinstance(bell._backend, backend.GVisorBackend)
        (tried,) = checkpoint.every(bell._backend._root)
    # One to be saved, one to see that it is not gVisor as a whole, and the session.
    assert launched == ["cold", "cold", "cold"]
    assert tried.refusal.startswith("runsc checkpoint: ")
    assert "no-such-container" in tried.refusal or "not exist" in tried.refusal
