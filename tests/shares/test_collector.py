"""The garbage collector rests while something large is parsed, and never for longer."""

import gc
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from divingbell.shares.collector import Collector
from tests.collecting import collections_begun

PATIENCE = 20.0


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


def test_one_rest_is_not_prolonged_by_another() -> None:
    collector = Collector()

    with ThreadPoolExecutor(2) as threads:
        began, ends = threading.Barrier(2), threading.Barrier(2)

        def beside() -> None:
            began.wait(PATIENCE)
            ends.wait(PATIENCE)

        def first() -> Future[None]:
            other = threads.submit(collector.at_rest, beside)
            began.wait(PATIENCE)
            assert not gc.isenabled()
            return other

        other = threads.submit(collector.at_rest, first).result(PATIENCE)
        assert gc.isenabled()  # though the other is still at work
        ends.wait(PATIENCE)
        other.result(PATIENCE)
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
