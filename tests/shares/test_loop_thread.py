"""The thread of the event loop goes first, and nothing that it starts does."""

import ctypes
import platform
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from divingbell import Divingbell
from divingbell.shares import loop_thread
from divingbell.shares.loop_thread import HAND_OVER, SLICE, go_first, hand_over_soon

_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}


@pytest.fixture
def switching() -> Iterator[None]:
    """Python's own interval, as it is for whoever changes nothing."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def slice_of_this_thread() -> int:
    """Return the nanoseconds that the kernel gives it; 0 where it does not say (before 6.12)."""
    found = loop_thread._Attributes()
    libc = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_long(_SCHED_GETATTR[platform.machine()])
    assert libc.syscall(number, 0, ctypes.byref(found), ctypes.sizeof(found), 0) == 0
    return int(found.runtime)


def test_it_has_a_short_slice_and_what_it_starts_has_the_usual_one() -> None:
    def in_thread() -> tuple[int, int, int]:
        usual = slice_of_this_thread()
        go_first()
        go_first()  # a second Divingbell changes nothing
        with ThreadPoolExecutor(1) as started:
            return usual, slice_of_this_thread(), started.submit(slice_of_this_thread).result()

    with ThreadPoolExecutor(1) as apart:
        usual, mine, theirs = apart.submit(in_thread).result()
    if usual == 0:
        pytest.skip("this kernel has one slice for all")
    assert (mine, theirs) == (SLICE, usual)


def test_other_threads_hand_the_interpreter_over_soon(switching: None) -> None:
    hand_over_soon()
    assert sys.getswitchinterval() == pytest.approx(HAND_OVER, rel=0.01)
    sys.setswitchinterval(HAND_OVER / 10)
    sooner = sys.getswitchinterval()
    hand_over_soon()
    assert sys.getswitchinterval() == sooner


async def test_a_program_that_has_one_keeps_its_own_interval(switching: None) -> None:
    before = sys.getswitchinterval()
    async with Divingbell("local", pool=0):
        assert sys.getswitchinterval() == before


async def test_the_loop_of_a_divingbell_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(loop_thread, "go_first", lambda: asked.append(1))
    async with Divingbell("local", pool=0):
        assert asked == [1]
