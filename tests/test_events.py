"""`on_event` and `divingbell.events`: the door to the journal for users."""

import typing

import pytest

from divingbell import ConfigError, Divingbell, events
from divingbell.journal import events as journal_events
from divingbell.settings.config import Settings


def test_every_event_of_the_journal_is_public() -> None:
    kinds = typing.get_args(journal_events.JournalEvent)
    assert set(events.__all__) == {kind.__name__ for kind in kinds} | {
        "Dropped",
        "Intent",
        "JournalEvent",
    }
    assert all(getattr(events, kind.__name__) is kind for kind in kinds)


async def test_everything_is_told_from_the_start_to_the_end() -> None:
    seen: list[events.JournalEvent] = []
    async with Divingbell(pool=0, preload=(), on_event=seen.append) as bell:
        await bell.execute("6 * 7", user="ada", labels={"team": "blue"})
        left_open = await bell.open("left")
    assert [type(event).__name__ for event in seen] == [
        "SessionOpened", "CellStarted", "CellEnded", "SessionEnded",
        "SessionOpened", "SessionEnded",
    ]  # fmt: skip
    opened = seen[0]
    assert isinstance(opened, events.SessionOpened)
    assert (opened.principal.user, opened.labels) == ("ada", {"team": "blue"})
    assert left_open.closed


async def test_what_it_raises_is_logged_and_breaks_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(event: events.JournalEvent) -> None:
        raise RuntimeError("of the user's own")

    async with Divingbell.of(Settings(pool=0, preload=()), on_event=fail) as bell:
        assert (await bell.execute("6 * 7")).value == 42
    assert "of the user's own" in caplog.text


def test_one_that_would_have_to_be_awaited_is_refused() -> None:
    async def slow(event: events.JournalEvent) -> None: ...

    with pytest.raises(ConfigError, match="called and not awaited"):
        Divingbell(on_event=slow)  # type: ignore[arg-type]
