import base64
import collections
import datetime
import decimal
import enum
import json
import math
import subprocess
import sys
import uuid
import zoneinfo
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from divingbell_inside import value_reader, value_rules, values
from divingbell_inside.values import InvalidData, NotPlain, TooLarge

OSLO = zoneinfo.ZoneInfo("Europe/Oslo")
HALF_PAST_TWO = datetime.datetime(2026, 10, 25, 2, 30)
"""In Oslo this comes twice."""
CET = datetime.timezone(datetime.timedelta(hours=1), "CET")
MODULUS = (1 << 61) - 1
"""Multiples of it all have the hash 0."""

LARGEST = (1 << value_rules.MAX_BITS) - 1
numbers = some.integers() | some.booleans().map(lambda sign: -LARGEST if sign else LARGEST)
offsets = some.timedeltas(
    datetime.timedelta(hours=-23, minutes=-59), datetime.timedelta(hours=23, minutes=59)
)
texts = some.text(some.characters(exclude_categories=["Cs"]))
zones = some.none() | some.builds(datetime.timezone, offsets) | some.just(OSLO)
zones |= some.builds(datetime.timezone, offsets, texts)
moments = some.datetimes(timezones=zones) | some.datetimes(allow_imaginary=False)
folded = moments.map(lambda moment: moment.replace(fold=1))
times = some.builds(
    lambda time, zone, fold: time.replace(tzinfo=zone, fold=fold),
    some.times(),
    zones,
    some.integers(0, 1),
)
signalling = some.just(decimal.Decimal("-sNaN12"))  # it has no hash
scalars = (
    some.none() | some.booleans() | numbers | some.floats() | texts | some.binary()
    | some.dates() | moments | folded | times | some.timedeltas() | some.complex_numbers()
    | some.decimals(allow_nan=False) | some.just(decimal.Decimal("NaN123")) | some.uuids()
)  # fmt: skip
keys = some.recursive(
    scalars, lambda inner: some.frozensets(inner) | some.tuples(inner, inner), max_leaves=5
)
plain = some.recursive(
    signalling | keys,
    lambda inner: (
        some.lists(inner)
        | some.lists(inner).map(tuple)
        | some.dictionaries(texts | texts.map("${}".format), inner)
        | some.dictionaries(keys, inner)
        | some.sets(keys)
    ),
    max_leaves=20,
)
json_data = some.recursive(
    some.none() | some.booleans() | numbers | some.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: some.lists(inner) | some.dictionaries(
        texts | some.sampled_from(sorted(value_reader.READERS)), inner
    ),
)  # fmt: skip


def spelled(value: Any) -> Any:
    """A value with the type of everything in it, and NaN and -0.0 as texts that can be compared."""
    if isinstance(value, dict):
        return dict, [(spelled(key), spelled(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [spelled(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value), sorted(map(repr, map(spelled, value)))
    if isinstance(value, datetime.datetime | datetime.time):
        zone = value.tzinfo
        return type(value), value.replace(tzinfo=None), value.fold, repr(zone)
    return type(value), repr(value)


@given(plain)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    form = values.to_json(value)
    assert spelled(values.from_json(form)) == spelled(value)
    json.loads(form)


@given(json_data)
def test_what_can_be_read_is_written_in_the_same_form(data: Any) -> None:
    try:
        value = values.decode(data)
    except InvalidData:
        return
    assert values.decode(values.encode(value)) == value or value != value
    assert spelled(values.decode(values.encode(value))) == spelled(value)


FORMS: list[tuple[Any, Any]] = [
    ([None, True, 1, 1.5, "a"], [None, True, 1, 1.5, "a"]),
    ({"a": {"b": []}}, {"a": {"b": []}}),
    (math.inf, {"$float": "inf"}),
    (b"\0\xff", {"$bytes": "AP8="}),
    ((1, (2,)), {"$tuple": [1, {"$tuple": [2]}]}),
    ({3}, {"$set": [3]}),
    (frozenset(), {"$frozenset": []}),
    ({1: 2, "1": 3}, {"$dict": [[1, 2], ["1", 3]]}),
    ({"$date": "x"}, {"$dict": [["$date", "x"]]}),
    (datetime.date(2026, 11, 17), {"$date": "2026-11-17"}),
    (datetime.time(12, 30), {"$time": "12:30:00"}),
    (HALF_PAST_TWO.replace(tzinfo=datetime.UTC), {"$datetime": "2026-10-25T02:30:00+00:00"}),
    (HALF_PAST_TWO.replace(tzinfo=OSLO, fold=1),
     {"$datetime": ["2026-10-25T02:30:00", {"fold": 1, "zone": "Europe/Oslo"}]}),
    (HALF_PAST_TWO.replace(tzinfo=CET),
     {"$datetime": ["2026-10-25T02:30:00+01:00", {"name": "CET"}]}),
    (datetime.timedelta(seconds=-1), {"$timedelta": [-1, 86399, 0]}),
    (decimal.Decimal("1.10"), {"$decimal": "1.10"}),
    (complex(1, -math.inf), {"$complex": [1.0, {"$float": "-inf"}]}),
    (uuid.UUID(int=1), {"$uuid": "00000000-0000-0000-0000-000000000001"}),
]  # fmt: skip


@pytest.mark.parametrize(("value", "form"), FORMS, ids=str)
def test_the_form_is_the_one_that_is_documented(value: Any, form: Any) -> None:
    assert values.encode(value) == form
    assert spelled(values.decode(form)) == spelled(value)


def test_two_values_that_are_no_number_stay_two() -> None:
    assert len(values.decode(values.encode({float("nan"), float("nan")}))) == 2


class Color(enum.StrEnum):
    RED = "red"


class Liar:
    __class__ = int  # type: ignore[assignment]


class Unhashable(type):
    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        return True


class Odd(metaclass=Unhashable):
    pass


class Zone(datetime.tzinfo):
    pass


NOT_PLAIN: list[tuple[Any, str, str]] = [
    (Color.RED, "", "is of the type Color, a kind of str"),
    (collections.OrderedDict(), "", "is of the type OrderedDict, a kind of dict"),
    (Liar(), "", "is of the type Liar"),
    (Odd(), "", "is of the type Odd"),
    ([1, {"when": [Zone()]}], "[1].when[0]", "is of the type Zone"),
    ({"a b": {7: ...}}, "['a b'][7]", "is of the type ellipsis"),
    ({(1, Liar()): 1}, "[…][1]", "is of the type Liar"),
    ({"s": {frozenset([Liar()])}}, ".s[…]", "is of the type Liar"),
    (1 << value_rules.MAX_BITS, "", "is a number of more than 4096 bits"),
    ("\ud800", "", "is a text with half a character (a lone surrogate)"),
    (decimal.Decimal("1" * 2000), "", "is a decimal number of more than 1300 characters"),
    (HALF_PAST_TWO.replace(tzinfo=Zone()), "", "has a time zone of the type Zone"),
    ({number * MODULUS for number in range(20)}, "", "has too many keys with the same hash"),
    (dict.fromkeys(range(4001)), "", "has more than 4,000 keys that are not text"),
    ({(number,) for number in range(4001)}, "", "has more than 4,000 keys that are not text"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "place", "reason"), NOT_PLAIN, ids=range(len(NOT_PLAIN)))
def test_what_is_not_kept_exactly_is_refused_by_its_place(
    value: Any, place: str, reason: str
) -> None:
    with pytest.raises(NotPlain) as caught:
        values.encode(value)
    assert (caught.value.place, caught.value.reason) == (place, reason)


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotPlain, match="nested too deeply"):
        values.encode(loop)


@pytest.mark.parametrize("value", [[0] * 11, {str(n): n for n in range(6)}, ["x" * 101], b"x" * 76])
def test_what_is_too_large_is_refused_as_that(value: Any) -> None:
    with pytest.raises(TooLarge):
        values.encode(value, items=10, text=100)


@given(plain)
def test_what_is_small_enough_to_be_written_is_small_enough_to_be_read(value: Any) -> None:
    for items, text in ((3, 1000), (1000, 3), (20, 20)):
        try:
            form = values.encode(value, items=items, text=text)
        except NotPlain:
            continue
        assert spelled(values.decode(form, items=items, text=text)) == spelled(value)


def nested(depth: int) -> Any:
    data: Any = 1
    for _ in range(depth):
        data = {"$tuple": [data]}
    return data


COLLIDING = [number * MODULUS for number in range(20_000)]
HOSTILE: list[Any] = [
    1 << 5000,
    math.nan,
    math.inf,
    nested(100),
    {"$tuple": 1},
    {"$tuple": {"0": 1}},
    {"$set": [[1]]},
    {"$set": [1, 1]},
    {"$set": [1, True]},
    {"$set": COLLIDING},
    {"$frozenset": COLLIDING},
    {"$dict": [[number, None] for number in COLLIDING]},
    {"$set": [{"$uuid": str(uuid.UUID(int=number))} for number in COLLIDING]},
    {"$set": [{"$decimal": "sNaN"}]},
    {"$dict": [[1, 2], [1, 3]]},
    {"$dict": [[[], 2]]},
    {"$dict": [[1]]},
    {"$dict": [{"a": 1, "b": 2}]},
    {"$dict": {"a": 1}},
    {"$float": "1.5"},
    {"$float": 1.5},
    {"$float": ["nan"]},
    {"$bytes": "AP8"},
    {"$bytes": "A\nP8="},
    {"$bytes": "\u00e9"},
    {"$bytes": 7},
    {"$decimal": "1" * 2000},
    {"$decimal": "1_0"},
    {"$decimal": " 1"},
    {"$decimal": "\u0661"},
    {"$decimal": "1e99999999999999999999"},
    {"$decimal": "x"},
    {"$decimal": 1},
    {"$date": "2026-13-01"},
    {"$date": "20261117"},
    {"$date": "2026-11-17T00:00:00"},
    {"$datetime": "2026-11-17"},
    {"$datetime": "2026-11-17T00:00:00Z"},
    {"$datetime": ["2026-11-17T00:00:00", {}]},
    {"$datetime": ["2026-11-17T00:00:00", {"zone": "../../etc/passwd"}]},
    {"$datetime": ["2026-11-17T00:00:00", {"zone": "Europe/../Europe/Oslo"}]},
    {"$datetime": ["2026-11-17T00:00:00", {"zone": "/etc/localtime"}]},
    {"$datetime": ["2026-11-17T00:00:00", {"zone": "leapseconds"}]},
    {"$datetime": ["2026-11-17T00:00:00", {"zone": ["Europe/Oslo"]}]},
    {"$datetime": ["2026-11-17T00:00:00+01:00", {"zone": "Europe/Oslo"}]},
    {"$datetime": ["2026-11-17T00:00:00", {"name": "CET"}]},
    {"$datetime": ["2026-11-17T00:00:00", {"fold": 2}]},
    {"$datetime": ["2026-11-17T00:00:00", {"fold": True}]},
    {"$datetime": ["2026-11-17T00:00:00", {"fold": []}]},
    {"$datetime": ["2026-11-17T00:00:00", {"more": 1}]},
    {"$datetime": ["2026-11-17T00:00:00", 1]},
    {"$time": "25:00"},
    {"$timedelta": [1, 2]},
    {"$timedelta": [1, 2.0, 3]},
    {"$timedelta": [True, 0, 0]},
    {"$timedelta": [0, 86400, 0]},
    {"$timedelta": [10**10, 0, 0]},
    {"$timedelta": [1 << 4000, 0, 0]},
    {"$complex": [1, 2]},
    {"$complex": [1.0]},
    {"$complex": [1.0, {"$set": []}]},
    {"$uuid": "0" * 32},
    {"$uuid": "{00000000-0000-0000-0000-000000000001}"},
    {"$uuid": None},
    {"$unknown": 1},
    {"$": 1},
    {"$date": "2026-11-17", "$time": "12:30:00"},
    {"$date": "2026-11-17", "more": 1},
    {"more": 1, "$date": "2026-11-17"},
    {"a": {1: 2}},
    "\ud800",
    {"\ud800": 1},
    object(),
    [0] * (values.MAX_ITEMS + 1),
    ["x" * (values.MAX_TEXT // 2)] * 3,
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_a_form_that_nobody_writes_is_refused_in_a_sentence(data: Any) -> None:
    with pytest.raises(InvalidData) as caught:
        values.decode(data)
    assert 10 < len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "raw",
    [b"", b"NaN", b"1e999", b"1 2", b'{"a":1,"a":2}', b'"\\ud800"', b"\xff", b"[" * 100_000,
     b"1" + b"0" * 5000],
    ids=lambda raw: str(raw[:12]),
)  # fmt: skip
def test_json_that_is_not_strict_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidData):
        values.from_json(raw)


def test_decimals_with_giant_exponents_are_never_written_out() -> None:
    form = {"$set": [{"$decimal": f"1E+{10**17 + number}"} for number in range(1000)]}
    found = values.decode(form)
    assert len(found) == 1000
    assert values.decode(values.encode(found)) == found


def test_few_files_of_time_zones_are_read() -> None:
    known = sorted(zoneinfo.available_timezones())[: value_rules.MAX_ZONES + 1]
    moments = [{"$datetime": ["2026-11-17T00:00:00", {"zone": name}]} for name in known]
    assert len(values.decode(moments[:-1] * 2)) == 2 * value_rules.MAX_ZONES
    with pytest.raises(InvalidData, match="time zones"):
        values.decode(moments)


def test_base64_of_any_length_counts_as_its_text() -> None:
    data = bytes(1000)
    assert values.decode({"$bytes": base64.b64encode(data).decode()}) == data
    with pytest.raises(InvalidData, match="too much text"):
        values.decode({"$bytes": base64.b64encode(data).decode()}, text=1000)


def test_neither_numpy_nor_pandas_is_loaded_for_it() -> None:
    program = (
        "import sys; from divingbell_inside import values; values.encode([1]);"
        "print({'numpy', 'pandas', 'IPython', 'divingbell'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_keys_whose_hash_nobody_can_choose_may_be_many() -> None:
    days = [datetime.date.fromordinal(number) for number in range(1, 6000)]
    moments = [datetime.datetime(2026, 1, 1) + datetime.timedelta(number) for number in range(6000)]
    for keys in (map(str, range(20_000)), days, moments):
        value = dict.fromkeys(keys, 1)
        assert values.decode(values.encode(value)) == value


def test_of_keys_whose_hash_can_be_chosen_only_so_many_are_put_into_a_table() -> None:
    # Hashes that differ can share a way through the table, so that each walks past all others.
    with pytest.raises(InvalidData, match="4,000 keys that are not text"):
        values.decode({"$set": list(range(4001))})
    with pytest.raises(InvalidData, match="4,000 keys"):
        values.decode({"$dict": [[{"$tuple": [number]}, 1] for number in range(4001)]})
    several = [{"$set": list(range(4000))}] * 6
    with pytest.raises(InvalidData, match="too many keys"):
        values.decode(several)
    assert len(values.decode(several[:5])) == 5
