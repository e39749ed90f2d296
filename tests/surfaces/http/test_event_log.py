"""Logs of events: bounded, for readers who come late, read slowly, or leave."""

import asyncio
from contextlib import aclosing

from divingbell.surfaces.http.event_log import ENTRY, EventLog
from tests.waiting import PATIENCE


async def _all(log: EventLog, after: int = 0) -> list[tuple[int, str, bytes]]:
    async with asyncio.timeout(PATIENCE), aclosing(log.follow(after)) as entries:
        return [(each.number, each.name, each.data) async for each in entries if each]


async def test_a_reader_who_comes_late_is_told_how_much_is_missing() -> None:
    log = EventLog(most_entries=3)
    for number in range(10):
        log.add("n", number)
    log.close()
    assert await _all(log) == [(7, "gap", b'{"missed":7}'), (8, "n", b"7"), (9, "n", b"8"),
                               (10, "n", b"9")]  # fmt: skip
    assert await _all(log, 9) == [(10, "n", b"9")]
    assert await _all(log, 10) == []
    assert log.entry(3) is None and log.entry(9) is not None and log.entry(11) is None


async def test_the_newest_is_kept_however_long_it_is() -> None:
    log = EventLog(most=10)
    log.add("a", "x")
    log.add("b", "y" * 100)
    log.close()
    assert [name for _, name, _ in await _all(log)] == ["gap", "b"] and log.size == 102 + ENTRY


async def test_many_events_that_tell_next_to_nothing_take_room_too() -> None:
    log = EventLog(most=10 * ENTRY)
    for _ in range(100):
        log.add("clear", {})
    assert log.size <= 10 * ENTRY and log.entry(91) is None and log.entry(100) is not None


async def test_several_readers_hear_the_same() -> None:
    log = EventLog()
    reading = [asyncio.create_task(_all(log)) for _ in range(3)]
    for number in range(5):
        await asyncio.sleep(0)
        log.add("n", number)
    log.close()
    first, *others = [await each for each in reading]
    assert len(first) == 5 and all(each == first for each in others)
