"""Column files: what is written is read again, and what hostile code forges is refused."""

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell_inside import columns, objects, parcels
from divingbell_inside.texts import SEPARATORS
from tests import libraries

numpy = libraries.need("numpy")
pandas = libraries.need("pandas")
polars = libraries.need("polars")
libraries.need("pyarrow")

ZONE = "Europe/Berlin"
TIMES = pandas.to_datetime(["2026-01-01", "2026-06-01", None])
FRAME = pandas.DataFrame(
    {
        "number": [1.5, numpy.nan, numpy.inf],
        "text": ["a", None, "é"],
        "mixed": pandas.Series(["a", 1, None], dtype=object),
        "nullable": pandas.array([1, None, 3], dtype="Int64"),
        "category": pandas.Categorical(["x", None, "y"], ordered=True),
        "zoned": TIMES.tz_localize(ZONE),
    }
)
VALUES = {
    "list": [1, {"a": (2, None)}, "b"],
    "plain": {1: {2.5, "x"}},
    "text": "é" * 3,
    "bytes": b"\x00\xff",
    "array": numpy.arange(6).reshape(2, 3),
    "fixed texts": numpy.array(["a", "bcd"]),
    "truths": numpy.array([True, False]),
    "objects": numpy.array(["a", None], object),
    "frame": FRAME,
    "levels": FRAME.set_index(["text", "nullable"]),
    "levels with categories": FRAME.set_index(["category", "text"])[["number"]],
    "series": FRAME["zoned"],
    "polars": polars.DataFrame({"a": [1, None], "b": ["x", "y"], "c": [[1], None]}),
    "types of polars": polars.DataFrame(
        {
            "a": [datetime.date(2026, 1, 1), None],
            "b": [2**100, 1],
            "c": [None, None],
            "d": [datetime.time(1), None],
        },
        schema_overrides={"b": polars.Int128},
    ),
}


def packed(value: Any) -> bytearray:
    return bytearray(b"".join(parcels.pack(value)))


def unpacked(data: bytes | bytearray, *libraries: str) -> Any:
    return parcels.unpack(columns.Reader(bytearray(data)), libraries)


def header_of(data: bytes | bytearray) -> tuple[Any, bytes]:
    """The header of a file, and the buffers after it."""
    size = int.from_bytes(data[8:16], "little")
    start = 16 + size
    return json.loads(data[16:start]), bytes(data[start + -start % columns.ALIGNMENT :])


def forged(header: Any, buffers: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = columns.MAGIC + len(text).to_bytes(8, "little") + text
    return start + bytes(-len(start) % columns.ALIGNMENT) + buffers


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all parts of a header."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


HOSTILE = (
    None, True, -1, 0, 1, 2**31, 2**62, 2**80, 1.5, "", "x", "O", "<f8", "|V8", "<f16", "<U999999",
    "range", "data", "text", "levels", "index", "categories", "../../etc/passwd", [], [[]], {},
    {"$set": [[1]]}, {"type": "range", "bounds": [0, 2**62, 1], "name": None}, [2**62] * 3, [-1],
    {"type": "categories", "labels": {"type": "categories"}, "count": 1}, "Null", "Int128",
    "Decimal(precision=38, scale=38)", "Decimal(precision=99, scale=99)", {"polars": {"a": "Time"}},
)  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_each_part_of_a_header_can_be_forged_and_nothing_but_a_refusal_comes(name: str) -> None:
    header, buffers = header_of(packed(VALUES[name]))
    for path in list(places(header)):
        for hostile in HOSTILE:
            copy = json.loads(json.dumps(header))
            at = copy
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = hostile
            for library in ((), ("polars",)):
                try:
                    unpacked(forged(copy, buffers), *library)
                except (columns.Broken, columns.NotHeld) as error:
                    assert str(error)


@settings(max_examples=300)
@given(st.data())
def test_bytes_of_a_file_that_are_changed_cut_or_added_end_in_a_value_or_a_refusal(
    data: st.DataObject,
) -> None:
    raw = packed(VALUES[data.draw(st.sampled_from(sorted(VALUES)))])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        change = data.draw(st.sampled_from(["set", "cut", "add"]))
        if change == "set":
            raw[at] = data.draw(st.integers(0, 255))
        elif change == "cut" and at:
            del raw[at:]
        else:
            raw[at:at] = data.draw(st.binary(max_size=80))
    try:
        unpacked(raw)
    except (columns.Broken, columns.NotHeld) as error:
        assert str(error)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_file_at_all_are_refused(raw: bytes) -> None:
    with pytest.raises(columns.Broken):
        unpacked(raw)


TEXTS: dict[str, Any] = {
    "objects": lambda items: numpy.array(items, object),
    "pyarrow": lambda items: pandas.Series(items, dtype=pandas.StringDtype("pyarrow")),
}
"""Values whose texts are read one by one, and as they lie."""


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ([0, 2, 1], "overlap"),
        ([1, 1, 2], "overlap"),
        ([0, 1, 3], "overlap"),
        ([0, -1, 2], "overlap"),
        ([0, 2**62, 2], "overlap"),
        ([0, 1], "shorter or longer"),
    ],
)
def test_texts_are_read_only_from_where_they_are(offsets: list[int], words: str, kind: str) -> None:
    header, _ = header_of(packed(TEXTS[kind](["a", "b"])))
    raw = numpy.array(offsets, "<i8").tobytes()
    header["buffers"] = [len(raw), 2]
    data = raw + bytes(-len(raw) % columns.ALIGNMENT) + b"ab" + bytes(62)
    with pytest.raises(columns.Broken, match=words):
        unpacked(forged(header, data))


@pytest.mark.parametrize("more", ["", SEPARATORS], ids=["usual", "with separators"])
@pytest.mark.parametrize("kind", TEXTS)
def test_text_that_is_no_utf8_is_refused(kind: str, more: str) -> None:
    header, buffers = header_of(packed(TEXTS[kind](["ab", "é", more])))
    assert b"ab\xc3\xa9" in buffers
    split, surrogate, overlong = b"a\xc3\xa9b", b"\xed\xa0\x80b", b"ab\xc0\x80"
    for bad in (b"ab\xff\xff", split, surrogate, overlong):
        with pytest.raises(columns.Broken, match="UTF-8"):
            unpacked(forged(header, buffers.replace(b"ab\xc3\xa9", bad)))


def test_values_that_numpy_would_misread_are_refused() -> None:
    header, buffers = header_of(packed(numpy.array([True, False])))
    with pytest.raises(columns.Broken, match="neither true nor false"):
        unpacked(forged(header, b"\x07" + buffers[1:]))
    header, buffers = header_of(packed(numpy.array(["a"])))
    for point in (0x110000, 0xD800):
        with pytest.raises(columns.Broken, match="do not exist"):
            unpacked(forged(header, point.to_bytes(4, "little") + buffers[4:]))


def test_a_header_is_capped_strict_and_flat_before_it_is_used() -> None:
    with pytest.raises(columns.Broken, match="begin"):
        unpacked(columns.MAGIC + (2**62).to_bytes(8, "little") + bytes(100))
    with pytest.raises(columns.Broken, match="nested"):
        unpacked(forged(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", b""))
    with pytest.raises(columns.Broken, match="twice"):
        unpacked(forged(b'{"kind":"text","kind":"text"}', b""))


def test_whoever_reads_sees_json_before_it_is_parsed() -> None:
    seen: list[bytes] = []
    data = packed([1, 2])
    assert parcels.unpack(columns.Reader(data, seen.append)) == [1, 2]
    assert [raw[:1] for raw in seen] == [b"{", b"["]


def test_long_lists_are_read_in_parts_of_a_bounded_size() -> None:
    seen: list[int] = []
    value = [{"number": number} for number in range(50_000)]
    reader = columns.Reader(packed(value), lambda raw: seen.append(len(raw)))
    assert parcels.unpack(reader) == value
    assert len(seen) > 5 and max(seen) < 2 * objects.PART


def test_texts_have_a_limit_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed(pandas.DataFrame({"a": ["x"] * 3, "b": ["y"] * 3}))
    monkeypatch.setattr(columns, "MAX_TEXTS", 5)
    with pytest.raises(columns.Broken, match="more than 5 texts"):
        unpacked(data)


def test_categories_have_a_limit_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    value = pandas.Series(pandas.Categorical(range(3)))
    data = packed(value)
    monkeypatch.setattr(columns, "MAX_CATEGORIES", 2)
    with pytest.raises(columns.Broken, match="too many categories"):
        unpacked(data)
    with pytest.raises(columns.NotHeld, match="more than 2 categories"):
        packed(value)


def test_categories_of_categories_are_refused_at_any_depth() -> None:
    header, buffers = header_of(packed(VALUES["levels with categories"]))
    level = header["index"]["columns"][0]
    assert level["labels"]["type"] == "categories"
    level["labels"]["labels"] = json.loads(json.dumps(level["labels"]))
    for library in ((), ("polars",)):
        with pytest.raises(columns.Broken, match="labels refer to labels"):
            unpacked(forged(header, buffers), *library)


def test_a_frame_with_too_many_columns_is_refused_with_the_figures() -> None:
    frame = pandas.DataFrame(numpy.zeros((1, 60_000)))
    with pytest.raises(columns.NotHeld, match=r"too many columns.*1,048,576"):
        packed(frame)


@pytest.mark.parametrize("zone", [ZONE, datetime.timezone(datetime.timedelta(hours=-3))])
def test_zones_are_kept_by_name_and_by_offset(zone: Any) -> None:
    series = TIMES.tz_localize(zone).to_series(index=range(3))
    pandas.testing.assert_series_equal(unpacked(packed(series)), series)


@pytest.mark.parametrize("zone", ["../../etc/passwd", "/etc/passwd", "x" * 65, "", 10**30, None])
def test_zones_that_are_none_are_refused(zone: Any) -> None:
    header, buffers = header_of(packed(FRAME["zoned"]))
    header["column"]["zone"] = zone
    with pytest.raises(columns.Broken, match="time zone"):
        unpacked(forged(header, buffers))
