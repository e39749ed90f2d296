"""The border around a session: what crosses it, in which direction, and for which reader."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import pytest

from divingbell import Divingbell, Session
from divingbell.border.border import OpenBorder, Passage, Reader
from divingbell.principal import Principal
from tests.gateway.galley import ENTRY
from tests.surfaces.mcp.stamped import Whole, replaced

TOKEN = "[STAMP_482715]"


class Watching(OpenBorder):
    """Notes what crosses it, and puts another word in the place of one."""

    def __init__(self) -> None:
        self.crossed: list[tuple[str, str]] = []

    async def inward(
        self, value: Any, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Any:
        self.crossed.append(("in", type(value).__name__))
        return replaced(value, TOKEN, "bird")

    async def values_in(self, code: str, principal: Principal) -> dict[str, str]:
        return {TOKEN: "bird"}

    def passage(self, principal: Principal, charge: Any) -> Passage:
        return Whole(self, principal)

    async def outward(
        self, value: Any, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Any:
        self.crossed.append((reader, type(value).__name__))
        return replaced(value, "bird", f"{reader}-stamp")


@pytest.fixture(scope="module")
async def session(anyio_backend: str) -> AsyncIterator[Session]:
    options = {"pool": 0, "preload": [], "search": "words", "servers": {"galley": ENTRY}}
    async with (
        Divingbell(border=Watching(), **options) as bell,
        bell.session(user="ann") as session,
    ):
        yield session


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("servers.galley.echo('b' + 'ird')", "sandbox-stamp"),
        ("servers.galley.get_prompt('plan', topic='b' + 'ird')['messages']", "sandbox-stamp"),
        ("str(servers.galley.read_resource('notes://day/b' + 'ird'))", "sandbox-stamp"),
    ],
)
async def test_what_servers_answer_crosses_on_its_way_into_the_sandbox(
    session: Session, code: str, value: str
) -> None:
    result = await session.run(f"str({code})")
    assert value in str(result.value) and "bird" not in str(result.value), result


async def test_texts_of_a_value_go_out_wherever_they_stand_in_it(session: Session) -> None:
    result = await session.run(
        "word = '[STAMP_482715]'\n[{word}, (word,), {frozenset([word]): {1: word}}]"
    )
    stamp = "model-stamp"
    assert result.value == [{stamp}, (stamp,), {frozenset([stamp]): {1: stamp}}]


async def test_code_comes_in_and_all_that_it_shows_goes_out(session: Session) -> None:
    code = "word = '[STAMP_482715]'\nassert len(word) == 4\nprint(word)\nword"
    events = [event async for event in session.stream(code)]
    result = events[-1].result
    assert result is not None and result.status == "ok", result
    assert "bird" not in str([asdict(event) for event in events])
    assert result.text.split() == ["model-stamp", "'model-stamp'"]
    shown = [each for each in await session.variables() if each.name == "word"]
    assert shown[0].preview == "'model-stamp'"
    failed = await session.run("raise ValueError('[STAMP_482715]')")
    assert failed.error is not None and failed.error.message == "model-stamp"
    assert "bird" not in failed.error.traceback
    completed = await session.complete("wor", 3)
    assert any(each.text == "word" for each in completed)


async def test_an_open_border_changes_nothing() -> None:
    value, border = {"a": ["b"]}, OpenBorder()
    assert await border.inward(value, Principal()) is value
    assert await border.outward(value, Principal(), "sandbox") is value
    assert border.text("ann", Principal()) == "ann" and not border.holds_back(Principal())
    assert await border.values_in("[EMAIL_482715]", Principal()) == {}
