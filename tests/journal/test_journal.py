"""The journal: who is told, in which order, and what a subscriber can and can't do."""

import asyncio
import logging

import pytest

from divingbell import Divingbell
from divingbell.errors import NotRecorded
from divingbell.journal.events import CellEnded, CellStarted, Intent, JournalEvent, ServerUp
from divingbell.journal.journal import MOST_BYTES, Dropped, Journal
from divingbell.principal import Principal
from tests.waiting import PATIENCE

INTENT = CellStarted(Principal(), "s", 1, "1 + 1")


class Keeper:
    """A durable subscriber that may refuse."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.kept: list[JournalEvent] = []

    async def intend(self, event: Intent) -> None:
        await asyncio.sleep(0)
        if self.refuses:
            raise NotRecorded("the disk is full")
        self.kept.append(event)

    def note(self, event: JournalEvent) -> None:
        self.kept.append(event)


async def test_an_intent_is_kept_before_it_is_told() -> None:
    journal, keeper, told = Journal(), Keeper(), list[int]()
    journal.keep(keeper)
    journal.watch(lambda event: told.append(len(keeper.kept)))
    await journal.intend(INTENT)
    assert told == [1] and keeper.kept == [INTENT]


async def test_an_intent_that_is_refused_is_told_to_nobody() -> None:
    journal, told = Journal(), list[JournalEvent]()
    journal.watch(told.append)
    undo = journal.keep(Keeper(refuses=True))
    with pytest.raises(NotRecorded, match="the disk is full"):
        await journal.intend(INTENT)
    assert told == []
    undo()
    await journal.intend(INTENT)
    assert told == [INTENT]


async def test_a_watcher_that_fails_costs_nobody_anything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal, told = Journal(), list[JournalEvent]()

    def fail(event: JournalEvent) -> None:
        raise ValueError("oh")

    undo = journal.watch(fail)
    journal.watch(told.append)
    with caplog.at_level(logging.ERROR):
        journal.note(ServerUp("shop"))
    assert len(told) == 1 and "a subscriber of the journal failed" in caplog.text
    undo()
    caplog.clear()
    journal.note(ServerUp("shop"))
    assert len(told) == 2 and not caplog.records


async def test_a_slow_reader_loses_events_and_is_told_how_many() -> None:
    journal = Journal()
    feed = journal.follow(most=2)
    for name in "abcd":
        journal.note(ServerUp(name))
    async with asyncio.timeout(PATIENCE):
        read = [await anext(feed) for _ in range(3)]
    assert [getattr(event, "server", event) for event in read] == ["a", "b", Dropped(2)]
    journal.note(ServerUp("e"))
    feed.close()
    journal.note(ServerUp("f"))
    async with asyncio.timeout(PATIENCE):
        assert [event.server async for event in feed if isinstance(event, ServerUp)] == ["e"]


async def test_what_waits_for_a_slow_reader_is_counted_by_its_size_too() -> None:
    journal = Journal()
    feed = journal.follow()
    large = CellStarted(Principal(), "s", 1, "x" * (MOST_BYTES // 2))
    for _ in range(5):
        journal.note(large)
    feed.close()
    read = [event async for event in feed]
    assert read == [large, large, Dropped(3)]


async def test_whatever_keeps_an_intent_from_being_kept_is_one_error() -> None:
    class Full(Keeper):
        async def intend(self, event: Intent) -> None:
            raise OSError(28, "No space left on device", "/var/audit/log")

    journal = Journal()
    journal.keep(Full())
    with pytest.raises(NotRecorded, match="OSError") as caught:
        await journal.intend(INTENT)
    assert "/var" not in str(caught.value)


async def test_a_reader_that_waits_is_woken() -> None:
    journal = Journal()
    feed = journal.follow()
    reading = asyncio.ensure_future(anext(feed))
    await asyncio.sleep(0)
    journal.note(ServerUp("a"))
    async with asyncio.timeout(PATIENCE):
        assert isinstance(await reading, ServerUp)
    feed.close()


async def test_a_cell_that_can_t_be_recorded_is_not_run() -> None:
    async with Divingbell(pool=0, preload=[]) as bell, bell.session() as session:
        keeper = Keeper(refuses=True)
        bell.journal.keep(keeper)
        with pytest.raises(NotRecorded, match="the disk is full"):
            await session.run("x = 1")
        assert [type(event) for event in keeper.kept] == [] and session.cells == 0
        keeper.refuses = False
        result = await session.run("x")
        assert result.error is not None and result.error.type == "NameError"
        started, ended = keeper.kept
        assert isinstance(started, CellStarted) and isinstance(ended, CellEnded)
        assert (started.code, started.cell, ended.cell) == ("x", 1, 1)
        assert ended.result == result


async def test_a_cell_whose_caller_has_left_has_an_end() -> None:
    async with Divingbell(pool=0, preload=[]) as bell, bell.session() as session:
        events: list[JournalEvent] = []
        started = asyncio.Event()

        def watch(event: JournalEvent) -> None:
            events.append(event)
            if isinstance(event, CellStarted):
                started.set()

        bell.journal.watch(watch)
        running = asyncio.create_task(session.run("while True: pass"))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert isinstance(events[-1], CellEnded) and events[-1].result is None
