"""The walk through a value: all its texts, once each, in one order."""

import dataclasses
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.walk import Leaves, with_texts
from divingbell.models import Event, Output, Result

CARD = 4111111111111111

keys = st.one_of(st.text(max_size=5), st.integers(), st.binary(max_size=4), st.none())
leaves = st.one_of(
    keys,
    st.booleans(),
    st.floats(),
    st.decimals(),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(),
    st.sampled_from([CARD, float(CARD), Decimal(CARD), complex(CARD, CARD), 1 - CARD]),
    st.frozensets(st.text(max_size=3), max_size=3),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4).map(MappingProxyType),
        st.builds(Result, st.just("ok"), inner),
        st.builds(lambda data: Event("display", outputs=(Output("text/plain", data),)), inner),
    ),
    max_leaves=12,
)


def met(value: Any) -> list[str]:
    """The texts that `with_texts` meets, the long numbers, and the dates."""
    found: list[str] = []

    def text(each: str) -> str:
        found.append(each)
        return each

    def number(each: Any) -> Any:
        found.append(each.isoformat() if isinstance(each, date) else str(int(each)))
        return each

    with_texts(value, text, number)
    return found


@given(values)
def test_leaves_are_what_is_changed_in_the_same_order(value: Any) -> None:
    assert Leaves(value).texts == met(value)


@given(values, st.integers(0, 12), st.integers(0, 30))
def test_a_small_value_has_the_same_leaves_or_is_not_small(
    value: Any, parts: int, characters: int
) -> None:
    small, whole = Leaves.of_small(value, parts, characters), Leaves(value)
    assert small is None or small.texts == whole.texts
    assert small is None or sum(map(len, small.texts)) <= characters
    assert Leaves.of_small(value, 10_000, 100_000) is not None


@pytest.mark.parametrize(
    "value",
    [[0] * 11, {number: 0 for number in range(11)}, [[0] * 5, [0] * 5], b"x" * 11, ["x" * 11]],
)
def test_what_is_too_large_is_not_small(value: Any) -> None:
    assert Leaves.of_small(value, 10, 10) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (CARD, "card"),
        (float(CARD), "card"),
        (Decimal(CARD), "card"),
        (Decimal("4111111111111111.00"), "card"),
        (complex(CARD, 2), "(card+2.0j)"),
        ({"born": date(1984, 3, 2)}, {"born": "birthday"}),
        ((datetime(1984, 3, 2, 7), date(2000, 1, 1)), ("birthdayT07:00:00", date(2000, 1, 1))),
        (complex(0, CARD), "(0.0+cardj)"),
        (complex(float("nan"), CARD), "(nan+cardj)"),
        ({Decimal(CARD): (Decimal(1), complex(1, 2))}, {"card": (Decimal(1), complex(1, 2))}),
    ],
)
def test_numbers_of_all_kinds_and_dates_are_looked_at(value: Any, shown: Any) -> None:
    result = Result("ok", value)
    found = Leaves(result)
    texts = [text.replace(str(CARD), "card") for text in found.texts]
    changed = found.replaced_by([text.replace("1984-03-02", "birthday") for text in texts])
    assert changed == dataclasses.replace(result, value=shown)


@pytest.mark.parametrize("text", ["NaN", "sNaN", "-Infinity", "9E999999999", "1E-999999999"])
def test_decimals_that_are_no_whole_numbers_stay(text: str) -> None:
    number = Decimal(text)
    found = Leaves([number, "ann"])
    assert found.texts == ["ann"]
    assert found.replaced_by(["bea"])[0] is number
