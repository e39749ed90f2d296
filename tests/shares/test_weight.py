"""The weight of JSON, told before it is parsed."""

import asyncio
import json
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import mcp_types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.shares import weight
from divingbell.shares.turns import Turns
from divingbell.shares.weight import MAX_CONTAINERS, Scale, are_too_heavy, weight_of

NAME: ContextVar[str] = ContextVar("name")
VALUES = st.recursive(
    st.none() | st.integers() | st.text('\\"[{,:a', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=2), inner),
    max_leaves=20,
)


def count(value: Any) -> int:
    """How many values there are in one, itself among them."""
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(count, value.values()))
    return 1 + (sum(map(count, value)) if isinstance(value, list) else 0)


@given(VALUES)
def test_nothing_has_more_values_than_it_weighs(value: Any) -> None:
    assert count([value]) <= weight_of(json.dumps([value]).encode(), 10**9)


@given(VALUES, st.integers(1, 7))
def test_pieces_weigh_as_much_as_the_whole(value: Any, size: int) -> None:
    data = json.dumps([value]).encode()
    whole, pieces = Scale(), Scale()
    whole.add(data)
    for start in range(0, len(data), size):
        pieces.add(data[start : start + size])
    assert pieces.weight == whole.weight


def test_what_is_in_a_text_weighs_nothing() -> None:
    text = json.dumps(["[{,:" * 100_000 + '\\"' * 100_000]).encode()
    assert weight_of(text, 10**9) < 20


@pytest.mark.parametrize("number", [b"1.5", b"1e1", b"1E1"])
def test_a_float_weighs_more_than_an_integer(number: bytes) -> None:
    assert weight_of(number + b",", 9) == 2 > weight_of(b"1,", 9)


def test_a_list_of_booleans_may_be_long() -> None:
    assert weight_of(json.dumps([True, False] * 90_000).encode(), 10**9) < weight.MAX_ARGUMENTS


def test_no_more_is_weighed_than_is_needed() -> None:
    found = weight_of(b"[]," * 10_000_000, 1000)
    assert 1000 < found < 1_000_000


def test_what_is_large_is_told_from_a_few_parts() -> None:
    block = mcp_types.TextContent(type="text", text="x" * (weight.LARGE_TEXT - 100))
    large: list[Any] = [
        "x" * (weight.LARGE_TEXT + 1), [[]] * 10**6, {str(n): n for n in range(10**4)},
        {"x" * (weight.LARGE_TEXT + 1): 1}, [{"x" * 1000 + str(n): n} for n in range(300)],
        [[[[n] for n in range(100)]] * 100], mcp_types.CallToolResult(content=[block, block]),
    ]  # fmt: skip
    assert all(map(weight.is_large, large))
    small: list[Any] = [None, 7, "text", {"a": [1, 2]}, mcp_types.CallToolResult(content=[block])]
    assert not any(map(weight.is_large, small))


@pytest.mark.parametrize(("value", "here"), [("small", True), ("x" * 10**6, False)])
async def test_work_on_what_is_large_is_done_in_a_thread(value: str, here: bool) -> None:
    worker = await weight.beside(lambda _: threading.get_ident(), value)
    assert (worker == threading.get_ident()) is here


def test_many_lists_are_too_heavy_as_arguments_however_few_bytes_they_have() -> None:
    assert are_too_heavy(json.dumps([[]] * (MAX_CONTAINERS + 1)).encode())
    assert not are_too_heavy(json.dumps([[]] * (MAX_CONTAINERS - 1)).encode())
    assert not are_too_heavy(json.dumps("[]" * MAX_CONTAINERS).encode())


async def test_what_is_done_in_a_thread_is_charged_to_whoever_the_task_works_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[float] = []
    turns = Turns("session")
    monkeypatch.setattr(turns, "charge", taken.append)
    token = weight.TURNS.set(turns)
    try:
        small = await weight.beside(len, [1])
        large = await weight.beside(len, [1] * 100_000)
    finally:
        weight.TURNS.reset(token)
    assert (small, large, len(taken)) == (1, 100_000, 1) and taken[0] >= 0


async def test_one_thread_at_a_time_works_for_a_session_however_many_calls_it_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    working: list[str] = []
    together: list[list[str]] = []

    async def to_thread(work: Callable[..., Any], *arguments: Any) -> Any:
        working.append(NAME.get())
        together.append(sorted(working))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        working.remove(NAME.get())
        return work(*arguments)

    async def call(name: str, turns: Turns) -> None:
        NAME.set(name)
        weight.TURNS.set(turns)
        assert await weight.beside(len, [1] * 100_000) == 100_000

    monkeypatch.setattr(weight.WORKERS, "do", to_thread)
    mine, other = Turns("mine"), Turns("other")
    async with asyncio.TaskGroup() as group:
        for name, turns in [("mine", mine)] * 5 + [("other", other)]:
            group.create_task(call(name, turns))
    assert len(together) == 6 and ["mine", "other"] in together
    assert not any(names.count("mine") > 1 for names in together)


@given(VALUES, st.integers(0, 100))
def test_what_is_heavier_is_told_as_by_weighing_it(value: Any, most: int) -> None:
    data = json.dumps(value).encode()
    assert weight.is_heavier(data, most) is (weight_of(data, 10**9) > most)


def test_what_is_short_is_not_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight, "weight_of", None)
    assert not weight.is_heavier(b"[" * 100, 800)
