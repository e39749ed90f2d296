"""Blocking work beside the event loop: it can be called off, with all that it has started."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from divingbell.host import beside, profile
from tests.surfaces.mcp.held_back import WAITING, held_back
from tests.waiting import PATIENCE, until

FAMILY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
print(child.pid, flush=True)
child.wait()
"""


async def test_what_it_returns_or_raises_comes_back() -> None:
    assert await beside.run(lambda: 6 * 7) == 42
    with pytest.raises(ZeroDivisionError):
        await beside.run(lambda: 1 // 0)


async def test_programs_are_ended_with_their_children_when_nobody_waits_any_more() -> None:
    pids: list[int] = []
    cleared = threading.Event()

    def work() -> None:
        try:
            with (
                subprocess.Popen(
                    [sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, process_group=0
                ) as process,
                beside.ending(process),
            ):
                assert process.stdout is not None
                for line in process.stdout:
                    pids.extend((process.pid, int(line)))
        finally:
            cleared.set()

    running = asyncio.create_task(beside.run(work))
    await until(lambda: pids, "it runs")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert cleared.is_set(), "it was given time to clear up"
    await until(lambda: not any(map(_runs, pids)), "both are gone")


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def test_a_program_that_fails_is_told_by_its_status() -> None:
    def work() -> int:
        command = [sys.executable, "-c", "import sys; sys.stdout.close(); sys.exit(3)"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0) as process,
            beside.ending(process),
        ):
            assert process.stdout is not None
            process.stdout.read()
        return process.returncode

    assert await beside.run(work) == 3


async def test_work_that_was_called_off_starts_no_more_programs() -> None:
    begun, go_on = threading.Event(), threading.Event()
    outcomes: list[str] = []

    def work() -> None:
        begun.set()
        go_on.wait(PATIENCE)
        try:
            beside.check()
        except beside.CalledOff:
            outcomes.append("called off")

    running = asyncio.create_task(beside.run(work, clear_up=0))
    await until(begun.is_set, "it runs")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    go_on.set()
    await until(lambda: outcomes == ["called off"], "it has noticed")


def test_where_nothing_can_be_called_off_nothing_is() -> None:
    beside.check()


async def test_the_wait_for_another_process_can_be_called_off(tmp_path: Path) -> None:
    with held_back(tmp_path) as held:
        heard: list[str] = []
        running = asyncio.create_task(
            beside.run(lambda: profile.prepare(directory=held.profiles, progress=heard.append))
        )
        await until(lambda: WAITING in heard, "it waits")
        running.cancel()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(asyncio.CancelledError):
                await running
        held.release()
        async with asyncio.timeout(PATIENCE):  # the lock is nobody's
            found = await beside.run(lambda: profile.prepare(directory=held.profiles))
        assert found.path.parent == held.profiles
