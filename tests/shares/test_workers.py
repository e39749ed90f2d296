"""Long work for sessions: a little at a time, whoever it is for."""

import asyncio
import os
import threading

import pytest

from divingbell.shares import loop_thread
from divingbell.shares.workers import MOST, Workers

PATIENCE = 20.0


async def test_no_more_are_at_work_than_there_are_workers() -> None:
    workers = Workers()
    at_work, most = 0, 0
    guard = threading.Lock()
    enough = threading.Barrier(MOST)

    def work() -> str:
        nonlocal at_work, most
        with guard:
            at_work += 1
            most = max(most, at_work)
        enough.wait(PATIENCE)  # as many as there are do work at once
        with guard:
            at_work -= 1
        return threading.current_thread().name

    def elsewhere() -> str:
        return workers.here(work)

    done = await asyncio.gather(
        *(workers.do(work) for _ in range(4 * MOST)),
        *(asyncio.to_thread(elsewhere) for _ in range(2 * MOST)),
    )
    assert most == MOST
    assert len([name for name in done if name.startswith("divingbell-work")]) == 4 * MOST


def test_a_process_that_was_forked_has_workers_of_its_own() -> None:
    workers = Workers()
    os.register_at_fork(after_in_child=workers.renew)
    assert asyncio.run(workers.do(lambda: 1)) == 1
    pid = os.fork()
    if not pid:
        os._exit(workers._pool.submit(lambda: 7).result(PATIENCE))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


async def test_they_go_first_as_the_loop_does_which_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        loop_thread, "go_first", lambda: asked.append(threading.current_thread().name)
    )
    workers = Workers()
    name = await workers.do(lambda: threading.current_thread().name)
    assert asked == [name]
