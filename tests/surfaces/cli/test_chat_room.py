"""The room of a chat: what stays when its session ends, and when the conversation comes back."""

import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from divingbell.agent.events import Notice
from divingbell.agent.model import Model
from divingbell.agent.scripted import Says, ScriptedModel
from divingbell.session.base import SessionHandle
from divingbell.settings.config import Settings
from divingbell.surfaces.cli.chat_room import Place, Room

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    yield
    gc.unfreeze()  # a room takes the process for its own


@asynccontextmanager
async def room_of(*lines: Says, resume: str | None = None) -> AsyncIterator[Room]:
    async def model() -> Model:
        return ScriptedModel(lines)

    async def furnish(session: SessionHandle) -> None:
        """Put nothing into it."""

    room = Room(
        Settings(preload=()),
        model,
        furnish,
        lambda bell, session: None,
        *[lambda line: None] * 3,
        keeps=True,
        resume=resume,
    )
    async with room.opening():
        yield room


async def told(place: Place) -> list[str]:
    return [event.text async for event in place.ask("hello") if isinstance(event, Notice)]


async def test_the_mode_stays_when_the_session_ends_and_when_the_conversation_comes_back() -> None:
    async with room_of(Says("First."), Says("Second.")) as room:
        place = await room.place()
        assert gc.isenabled(), "it rests no longer than the room takes to open"
        assert await told(place) == ["mode code: there are no tools to call directly"]
        changed = await room.change_mode("hybrid")
        spent = changed.agent.total
        await changed.session.close("somebody else needs the place")
        room.renew_session()
        renewed = await room.place()
        assert renewed.session is not changed.session and not renewed.session.closed
        assert renewed.agent.mode is not None and renewed.agent.mode.mode == "hybrid"
        assert renewed.agent.total == spent and spent.input_tokens > 0
        assert await told(renewed) == [], "nothing was decided anew"
        assert [entry.text for entry in renewed.agent.history if entry.text[-1:] == "."] == [
            "First.",
            "Second.",
        ]
        await room.change_mode("direct")
    async with room_of(resume="") as room:
        resumed = await room.place()
        assert resumed.agent.mode is not None
        assert resumed.agent.mode.mode == "code", "without tools nothing can be done directly"
        await room.change_mode("hybrid")
    async with room_of(Says("Third."), resume="") as room:
        resumed = await room.place()
        assert resumed.agent.mode is not None and resumed.agent.mode.mode == "hybrid"
        assert await told(resumed) == []
