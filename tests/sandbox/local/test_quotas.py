"""Shares of what the kernel counts by user."""

import asyncio
import ctypes
import os
import resource
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.sandbox.local import quotas
from divingbell.sandbox.local.quotas import INSTANCES, Quotas

INOTIFY = "import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
TAKE_ALL = f"{INOTIFY}taken = 0\nwhile libc.inotify_init() >= 0: taken += 1\ntaken"
WATCHING = f"""
{INOTIFY}import os, struct
line = libc.inotify_init()
assert libc.inotify_add_watch(line, b"/workspace", 0x100) > 0
open("new", "w").close()
struct.unpack_from("iIII", os.read(line, 4096))[1]
"""


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    (tmp_path / "max_user_instances").write_text("128\n")
    (tmp_path / "max_user_watches").write_text("64000\n")
    return tmp_path


def test_shares_add_up_to_what_there_is(limits: Path) -> None:
    divided = Quotas(300, shared=False, limits=limits)
    shares = [divided.take_inotify() for _ in range(300)]
    assert shares[:32] == [(INSTANCES, 2000)] * 32 and set(shares[32:]) == {(0, 0)}
    assert divided.pending_signals * 600 <= resource.getrlimit(resource.RLIMIT_SIGPENDING)[0]


def test_half_is_left_where_others_need_some_too(limits: Path) -> None:
    divided = Quotas(300, shared=True, limits=limits)
    shares = [divided.take_inotify() for _ in range(300)]
    assert sum(instances for instances, _ in shares) == 64
    assert sum(watches for _, watches in shares) == 32000


def test_a_share_that_is_given_back_goes_to_the_next(limits: Path) -> None:
    divided = Quotas(300, shared=False, limits=limits)
    shares = [divided.take_inotify() for _ in range(33)]
    divided.give_back_inotify(shares[-1])
    assert divided.take_inotify() == (0, 0)
    divided.give_back_inotify(shares[0])
    assert divided.take_inotify() == shares[0]


def test_where_there_is_almost_nothing_nobody_gets_any(limits: Path) -> None:
    (limits / "max_user_instances").write_text("3\n")
    assert Quotas(300, shared=False, limits=limits).take_inotify() == (0, 0)


async def test_a_session_has_its_share_and_can_watch_files(bell: Divingbell) -> None:
    async with bell.session() as session:
        assert (await session.run(WATCHING)).value == 0x100
        assert (await session.run(TAKE_ALL)).value == INSTANCES - 1
        watches = "int(open('/proc/sys/user/max_inotify_watches').read())"
        assert 0 < (await session.run(watches)).value < 1 << 30
        raising = "open('/proc/sys/user/max_inotify_instances', 'w')"
        assert (await session.run(raising)).status == "error"


async def test_shares_come_back_when_sessions_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "INSTANCES", 1 << 20)  # no share at all
    async with Divingbell(pool=0, preload=()) as bell:
        assert (await bell.execute(TAKE_ALL)).value == 0
    monkeypatch.undo()
    async with Divingbell(pool=0, preload=()) as bell:
        free = bell._backend._quotas._free  # type: ignore[attr-defined]
        before = len(free)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(bell.execute("1"))
        assert len(free) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user pays for the sessions")
async def test_root_does_not_pay_for_what_its_sessions_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Quotas, "take_inotify", lambda _: (1 << 20, 1 << 20))
    most = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    async with Divingbell(pool=0, preload=()) as bell, bell.session() as session:
        assert (await session.run(TAKE_ALL)).value == min(most, session.limits.open_files)
        line = ctypes.CDLL(None).inotify_init()
        assert line >= 0
        os.close(line)
