"""Plain data of what functions return: every kind of value, and never more than may be sent."""

import datetime
import decimal
import enum
import math
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, Field, model_serializer

from divingbell import ToolFailed
from divingbell.gateway.functions.plain import NoRoom, plain

ROOM = 10_000


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Pair(NamedTuple):
    left: int
    right: int


@dataclass
class Node:
    name: str
    children: list[Any] = field(default_factory=list)


class Model(BaseModel):
    made_on: datetime.date = Field(serialization_alias="madeOn")
    nodes: list[Node] = []


def made(value: Any) -> Any:
    return plain("host.tool", value, ROOM).value


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, None),
        (True, True),
        (-7, -7),
        (1.5, 1.5),
        (math.inf, math.inf),
        ("naïve \ud800", "naïve \ud800"),
        ([1, (2, Pair(3, 4))], [1, [2, [3, 4]]]),
        ({3}, [3]),
        (deque([1]), [1]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.values(), [1]),
        ({"a": 1}.keys(), ["a"]),
        (
            {1: "a", None: "b", Colour.RED: "c", 1.5: "d"},
            {"1": "a", "null": "b", "red": "c", "1.5": "d"},
        ),
        (Counter("aa"), {"a": 2}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.timedelta(hours=1), "PT1H"),
        (decimal.Decimal("1.10"), "1.10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path("/a/b"), "/a/b"),
        (Node("a", [Node("b")]), {"name": "a", "children": [{"name": "b", "children": []}]}),
        (
            Model(made_on=datetime.date(2026, 1, 2), nodes=[Node("a")]),
            {"madeOn": "2026-01-02", "nodes": [{"name": "a", "children": []}]},
        ),
        ((number for number in range(2)), [0, 1]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_become_plain_data(value: Any, expected: Any) -> None:
    assert made(value) == expected


@pytest.mark.parametrize(
    "value, words",
    [
        (b"x", "bytes are no text; send base64"),
        ([bytearray(b"x")], "bytes are no text"),
        (object(), "object is no data; return numbers, text, lists or dicts"),
        ([iter([1])], "list_iterator is read once; make a list of it"),
        ({(1, 2): 3}, "tuple is the key of a dict; use text"),
        (10**5000, "a whole number has too many digits"),
        (lambda: 1, "function is no data"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_data_is_named(value: Any, words: str) -> None:
    with pytest.raises(ToolFailed, match=words) as failed:
        made(value)
    assert failed.value.code == "tool_result" and "The call was made" in str(failed.value)


def _endless(seen: list[int]) -> Iterator[str]:
    while True:
        seen.append(1)
        yield "a piece of it"


def _laughs() -> list[Any]:
    """A small structure that is large once it is written out."""
    value: list[Any] = ["ha"]
    for _ in range(60):
        value = [value, value]
    return value


def test_an_endless_generator_is_read_as_far_as_there_is_room() -> None:
    seen: list[int] = []
    with pytest.raises(NoRoom):
        made(_endless(seen))
    assert len(seen) < ROOM


@pytest.mark.parametrize(
    "value",
    ["x" * (ROOM + 1), range(10**9), [0] * 10**6, _laughs(), {"a": {"b": "x" * ROOM}}],
    ids=["text", "range", "list", "laughs", "nested"],
)
def test_what_is_too_large_is_given_up(value: Any) -> None:
    with pytest.raises(NoRoom):
        made(value)


def test_many_small_parts_weigh_more_than_their_characters() -> None:
    with pytest.raises(NoRoom):
        plain("host.tool", [[]] * 200, 1_000_000, 1_000)
    assert plain("host.tool", [[]] * 100, 1_000_000, 1_000).weight > 800


def test_a_model_that_is_too_large_is_not_even_copied() -> None:
    dumped: list[int] = []

    class Large(BaseModel):
        rows: list[int]

        @model_serializer
        def _as_dict(self) -> dict[str, Any]:
            dumped.append(1)
            return {"rows": self.rows}

    assert made(Large(rows=[1])) == {"rows": [1]} and len(dumped) == 1
    with pytest.raises(NoRoom):
        made(Large(rows=[1] * 10**6))
    assert len(dumped) == 1


def test_a_structure_that_holds_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    knot: dict[str, Any] = {}
    knot["knot"] = knot
    node = Node("a")
    node.children.append(node)
    for value in (ring, knot, node):
        with pytest.raises((ToolFailed, NoRoom)):
            made(value)
    with pytest.raises(ToolFailed, match="nested too deeply, or holds itself"):
        plain("host.tool", ring, 10**7)
