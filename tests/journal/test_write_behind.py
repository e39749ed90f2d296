"""Items are taken at once and written in a thread, together, in their order, and to the end."""

import threading
from collections.abc import Iterator

import pytest

from divingbell.journal import write_behind
from divingbell.journal.write_behind import WriteBehind
from tests.waiting import PATIENCE, until

WAIT = 10.0


class Disk:
    """Writes batches down, and hangs until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.finished = 0
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def write(self, batch: list[int]) -> None:
        self.begun.set()
        assert self.goes_on.wait(WAIT)
        self.batches.append(batch)

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.goes_on.set()


async def test_what_waits_is_written_together_and_in_order(disk: Disk) -> None:
    behind = WriteBehind("test", disk.write, disk.finish)
    assert behind.add(0, 100)
    assert disk.begun.wait(WAIT)
    assert all(behind.add(number, 100) for number in range(1, 50))
    disk.goes_on.set()
    await behind.close()
    assert disk.batches == [[0], list(range(1, 50))]
    assert disk.finished == 1


async def test_one_more_than_may_wait_is_refused(disk: Disk) -> None:
    behind = WriteBehind("test", disk.write)
    assert behind.add(0, 2)
    assert disk.begun.wait(WAIT)
    assert [behind.add(number, 2) for number in (1, 2, 3)] == [True, True, False]
    disk.goes_on.set()
    await behind.close()
    assert disk.batches == [[0], [1, 2]]


async def test_what_comes_after_a_pause_is_written_too(disk: Disk) -> None:
    written = threading.Event()
    behind = WriteBehind[int]("test", lambda batch: (disk.batches.append(batch), written.set())[0])
    for number in range(3):
        written.clear()
        assert behind.add(number, 1)
        assert written.wait(WAIT)
    await behind.close()
    assert disk.batches == [[0], [1], [2]]


async def test_after_the_end_nothing_is_taken_and_the_end_comes_once(disk: Disk) -> None:
    disk.goes_on.set()
    behind = WriteBehind("test", disk.write, disk.finish)
    await behind.close()
    await behind.close()
    assert not behind.add(1, 10)
    assert (disk.batches, disk.finished) == ([], 1)


async def test_the_end_does_not_wait_for_a_disk_that_hangs(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_behind, "CLOSE_TIMEOUT", 0.01)
    behind = WriteBehind("test", disk.write, disk.finish)
    assert behind.add(1, 10)
    assert disk.begun.wait(WAIT)
    await behind.close()
    assert (disk.batches, disk.finished) == ([], 0)
    # What was taken is written all the same once the disk goes on.
    disk.goes_on.set()
    for thread in threading.enumerate():
        if thread.name.startswith("test_"):
            thread.join(WAIT)
    assert (disk.batches, disk.finished) == ([[1]], 1)


async def test_items_that_come_while_others_gather_are_written_with_them() -> None:
    batches: list[list[int]] = []
    behind: WriteBehind[int] = WriteBehind("test", batches.append, gathering=PATIENCE)
    for number in range(5):
        assert behind.add(number, most=5)
    assert not behind.add(6, most=5)
    await behind.close()  # which waits for nobody else
    assert batches == [[0, 1, 2, 3, 4]]


async def test_what_has_gathered_is_written_without_a_word() -> None:
    batches: list[list[int]] = []
    behind: WriteBehind[int] = WriteBehind("test", batches.append, gathering=0.01)
    for number in range(2):
        assert behind.add(number, most=5)
        await until(lambda count=number: sum(map(len, batches)) > count, "it is written")
    await behind.close()
