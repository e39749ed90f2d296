"""What crossing the border takes: walks through values, threads and passes, counted."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client

from divingbell import Divingbell, UnknownToken
from divingbell.border.privacy_border import PrivacyBorder
from divingbell.border.walk import Leaves
from divingbell.models import Event, Output, Result
from divingbell.principal import Principal
from divingbell.shares import weight
from divingbell.shares.workers import WORKERS
from divingbell.surfaces.mcp.exits import Exits
from divingbell.surfaces.mcp.server import Surface
from tests.border.test_seals import Maker

ANN = Principal("ann", "one")
BRACKETS = {"text": [[] for _ in range(19_000)]}


@pytest.fixture
async def make() -> AsyncIterator[Maker]:
    maker = Maker()
    yield maker
    await maker.close()


@pytest.fixture
async def border(make: Maker) -> PrivacyBorder:
    made = await make({}, "personal")
    await made.recalled(ANN)  # what was kept of a conversation is read once, in a thread
    return made


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often values are walked through, sized up, and worked on in threads."""
    counts: Counter[str] = Counter()

    def count(owner: Any, attribute: str, name: str) -> None:
        counting = _counting(getattr(owner, attribute), counts, name)
        monkeypatch.setattr(owner, attribute, counting)

    count(Leaves, "__init__", "walks")
    count(weight, "is_large", "sizes")
    count(WORKERS, "do", "threads")
    return counts


def _counting(work: Callable[..., Any], counts: Counter[str], name: str) -> Callable[..., Any]:
    def counting(*given: Any, **named: Any) -> Any:
        counts[name] += 1
        return work(*given, **named)

    return counting


def written(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "value",
    [
        "two",
        {"content": [{"type": "text", "text": "2"}]},
        Event("result", outputs=(Output("text/plain", "2"),)),
        Result("ok", 2, (Output("text/plain", "2"),)),
    ],
)
async def test_what_is_small_is_walked_through_once_on_its_way_out(
    border: PrivacyBorder, counted: Counter[str], value: Any
) -> None:
    assert await border.outward(value, ANN) is value
    assert counted == {"walks": 1}


async def test_arguments_whose_json_names_nothing_are_not_walked_through(
    border: PrivacyBorder, counted: Counter[str]
) -> None:
    data = written(BRACKETS)
    assert await border.inward(BRACKETS, ANN, "flood", data) is BRACKETS
    assert await border.restored(BRACKETS, ANN, data) == ()
    assert counted == {"sizes": 2}  # of the bytes


@pytest.mark.parametrize("word", ["[EMAIL_482715", "\\u0041", "x"])
async def test_large_arguments_are_looked_at_by_one_thread_once(
    border: PrivacyBorder, counted: Counter[str], word: str
) -> None:
    large = {**BRACKETS, "word": word}
    assert await border.inward(large, ANN, "flood") is large
    # The first walk ends where it meets too many parts.
    assert counted == {"walks": 2, "threads": 1}


async def test_an_exit_walks_through_a_short_answer_twice_and_does_no_more(
    border: PrivacyBorder, counted: Counter[str]
) -> None:
    answer = {"content": [{"type": "text", "text": "2"}], "isError": False}
    assert await Exits(border)._over(answer, ANN, dict) == answer
    # To see that it is short and all text, and at the border.
    assert counted == {"walks": 2}


async def test_one_answer_of_a_server_is_four_walks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, counted: Counter[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    async with Divingbell(privacy="personal", pool=0, preload=[]) as bell:
        surface = Surface(bell)
        async with Client(surface.server, cache=None) as client:
            await client.call_tool("execute_python", {"code": "1 + 1"})
            counted.clear()
            await client.call_tool("execute_python", {"code": "1 + 1"})
            assert counted["walks"] == 4  # through the event, the result, and the answer twice
        await surface.close()


words = st.lists(
    st.one_of(
        st.sampled_from(["TOKEN", "[EMAIL_999999]", "[email_482715]", "<EMAIL 482715>", "[X_1]"]),
        st.text(alphabet='[]<_ -A1"\\é\n', max_size=8),
    ),
    max_size=3,
).map("".join)
arguments = st.recursive(
    st.one_of(words, st.integers(), st.none(), st.booleans()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None)
@given(arguments, st.booleans())
def test_with_its_json_or_without_the_same_becomes_of_a_value(value: Any, is_ascii: bool) -> None:
    asyncio.run(_same_becomes_of(value, is_ascii))


async def _same_becomes_of(value: Any, is_ascii: bool) -> None:
    maker = Maker()
    try:
        border = await maker({}, "personal")
        token = await border.outward("ann@example.org", ANN)
        data = json.dumps(value, ensure_ascii=is_ascii).replace("TOKEN", token)
        given = json.loads(data)
        assert await _became(border, given, data.encode()) == await _became(border, given, None)
    finally:
        await maker.close()


async def _became(border: PrivacyBorder, value: Any, data: bytes | None) -> Any:
    try:
        return (
            await border.restored(value, ANN, data),
            await border.inward(value, ANN, "mail", data),
        )
    except UnknownToken as error:
        return str(error)
