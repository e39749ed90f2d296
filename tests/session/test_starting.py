"""A Divingbell that is entered while its sandbox still starts."""

import asyncio
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.errors import DivingbellError, ProfileError, SessionClosed
from divingbell.session import starting
from tests.surfaces.mcp.held_back import WAITING, HeldBack, held_back
from tests.waiting import PATIENCE, until


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "HeldBack":
    with held_back(tmp_path) as held:
        monkeypatch.setenv("DIVINGBELL_HOME", held.environment["DIVINGBELL_HOME"])
        yield held


async def test_servers_are_known_and_sessions_wait(held: HeldBack) -> None:
    servers = {"shop": {"command": "none"}}
    async with Divingbell(pool=0, servers=servers).starting() as bell:
        assert [state.name for state in bell.gateway.servers()] == ["shop"]
        opening = asyncio.create_task(bell.execute("6 * 7"))
        heard: list[str] = []

        async def tell(words: str) -> None:
            heard.append(words)

        ready = asyncio.create_task(bell.ready(tell))
        await until(lambda: any(WAITING in words for words in heard), "it is told")
        assert not opening.done()
        held.release()
        await ready
        assert (await opening).value == 42
        assert await bell.ready(tell) is None


async def test_who_waits_is_told_again_and_again(
    held: HeldBack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "HEARTBEAT", 0.01)
    async with Divingbell(pool=0).starting() as bell:
        heard: list[str] = []

        async def tell(words: str) -> None:
            heard.append(words)

        ready = asyncio.create_task(bell.ready(tell))
        await until(lambda: sum(WAITING in words for words in heard) > 3, "told again")
        ready.cancel()


async def test_who_waits_is_not_left_waiting_when_it_is_closed(held: HeldBack) -> None:
    async with Divingbell(pool=0).starting() as bell:
        opening = asyncio.create_task(bell.execute("1"))
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(SessionClosed):
            await opening
    with pytest.raises(DivingbellError, match="not running"):
        await bell.ready()


async def test_what_kept_it_from_starting_is_told_to_everybody(
    held: HeldBack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    held.abandon()
    async with Divingbell(pool=0).starting() as bell:
        for _ in range(3):
            with pytest.raises(ProfileError, match="can't be installed"):
                await bell.execute("1")


async def test_an_ordinary_start_that_fails_leaves_nothing(
    held: HeldBack, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    held.abandon()
    bell = Divingbell(pool=0)
    with pytest.raises(ProfileError):
        async with bell:
            pytest.fail("it has started")
    with pytest.raises(DivingbellError, match="not running"):
        bell.sessions()
