"""The garbage collector rests while something large is parsed and held, and never for long."""

import asyncio
import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from divingbell.shares import collector as module
from divingbell.shares.collector import Collector, Rest
from tests.collecting import collections_begun
from tests.waiting import PATIENCE, until


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    """Have it on, as it is in every program that does not say otherwise."""
    gc.enable()
    yield
    gc.enable()


def many() -> list[Any]:
    return [[] for _ in range(19_000)]


def test_nothing_is_looked_through_while_work_is_done_at_rest() -> None:
    collector = Collector()
    with collections_begun() as begun:
        many()
        assert len(begun) > 10
        before = len(begun)
        seen = collector.at_rest(lambda: (many(), len(begun) - before))[1]
        assert seen == 0
        many()
        assert len(begun) > before + 10


def test_it_goes_on_after_work_that_fails() -> None:
    collector = Collector()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            collector.at_rest(lambda: 1 // 0)
        assert gc.isenabled()


def test_where_a_program_has_switched_it_off_it_stays_off() -> None:
    gc.disable()
    assert Collector().at_rest(lambda: not gc.isenabled())
    assert not gc.isenabled()


@contextlib.contextmanager
def resting_in_threads(collector: Collector, count: int) -> Iterator[list[Callable[[], None]]]:
    """Have so many threads rest, one after the other; yield what ends each."""
    with ThreadPoolExecutor(count) as threads:
        ends: list[Callable[[], None]] = []
        for _ in range(count):
            began, over = threading.Event(), threading.Event()

            def work(began: threading.Event = began, over: threading.Event = over) -> None:
                began.set()
                assert over.wait(PATIENCE)

            done = threads.submit(collector.at_rest, work)
            assert began.wait(PATIENCE)

            def end(over: threading.Event = over, done: Future[None] = done) -> None:
                over.set()
                done.result(PATIENCE)

            ends.append(end)
        yield ends


def test_those_who_rest_at_the_same_time_do_so_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_REST", PATIENCE)
    with resting_in_threads(Collector(), 2) as (end_first, end_second):
        end_first()
        assert not gc.isenabled()
        end_second()
        assert gc.isenabled()


def test_a_rest_that_has_gone_on_for_long_is_joined_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LONGEST_REST", 0.0)
    with resting_in_threads(Collector(), 2) as (end_first, end_second):
        assert not gc.isenabled()
        end_first()
        assert gc.isenabled()  # though the other is still at work
        end_second()
    assert gc.isenabled()


def test_no_rest_puts_off_what_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "get_count", lambda: (gc.get_threshold()[0] + 1, 0, 0))
    assert Collector().at_rest(gc.isenabled)


async def test_a_rest_may_go_on_after_the_work_until_it_is_ended() -> None:
    rest = Collector().rest()
    with collections_begun() as begun:
        held = rest.begin_with(many)
        many()
        assert not begun and not gc.isenabled()
        del held
        rest.end_within(0)
        await until(gc.isenabled, "the collector goes on")


async def test_a_rest_ends_when_nobody_holds_it() -> None:
    rest = Collector().rest()
    rest.begin_with(many)
    assert not gc.isenabled()
    del rest
    assert gc.isenabled()


def test_a_rest_ends_with_its_event_loop() -> None:
    async def begin() -> Rest:
        rest = Collector().rest()
        rest.begin_with(many)
        rest.end_within(PATIENCE)
        return rest

    rest: Rest | None = asyncio.run(begin())
    assert not gc.isenabled()
    del rest
    assert gc.isenabled()


def test_a_process_that_is_forked_meanwhile_collects() -> None:
    collector = Collector()
    os.register_at_fork(after_in_child=collector.renew)

    def fork() -> int:
        pid = os.fork()
        if not pid:
            collects = gc.isenabled()
            can_rest = collector.at_rest(lambda: not gc.isenabled())
            os._exit(7 if collects and can_rest and gc.isenabled() else 1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert collector.at_rest(fork) == 7
    assert gc.isenabled()
