"""Texts that pandas keeps with pyarrow are passed as they lie, and nothing beside them is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell_inside import columns, parcels, texts
from tests import libraries

numpy = libraries.need("numpy")
pandas = libraries.need("pandas")
pyarrow = libraries.need("pyarrow")

KINDS = {
    lost: pandas.StringDtype("pyarrow", na_value=value)
    for lost, value in (("NaN", numpy.nan), ("NA", pandas.NA))
}


def packed(value: Any) -> bytearray:
    return bytearray(b"".join(parcels.pack(value)))


def unpacked(data: bytearray) -> Any:
    return parcels.unpack(columns.Reader(data), ("pandas",))


@given(
    st.lists(st.lists(st.one_of(st.none(), st.text(max_size=3))), max_size=3),
    st.sampled_from(sorted(KINDS)),
    st.integers(0, 3),
)
def test_texts_in_several_pieces_and_parts_of_them_are_kept(
    pieces: list[Any], lost: str, cut: int
) -> None:
    arrow = pyarrow.chunked_array(pieces, pyarrow.large_string())
    series = pandas.Series(pandas.array(arrow, dtype=KINDS[lost]))[cut:]
    found = unpacked(packed(series))
    pandas.testing.assert_series_equal(found, series)
    assert found.dtype == series.dtype and found.dtype.na_value is KINDS[lost].na_value
    assert type(found.array) is type(series.array)


def test_texts_of_an_index_and_of_levels_are_kept() -> None:
    frame = pandas.DataFrame({"a": ["x", None], "b": ["é", ""], "c": [1, 2]})
    for index in ("a", ["a", "b"]):
        indexed = frame.set_index(index)
        pandas.testing.assert_frame_equal(unpacked(packed(indexed)), indexed)


def test_no_text_is_made_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    series = pandas.Series(["a", None, "é"] * 1000, dtype=KINDS["NaN"])
    monkeypatch.delattr(texts, "_encoded")
    monkeypatch.delattr(texts, "_cut")
    data = packed(series)
    _, _, raw = pyarrow.array(unpacked(data).array).buffers()
    start = pyarrow.py_buffer(data).address
    assert start < raw.address < start + len(data)


def test_a_text_that_was_there_before_it_went_missing_is_not_written() -> None:
    buffers = [b"\x05", numpy.array([0, 1, 7, 8]), b"asecretb"]
    there, offsets, raw = map(pyarrow.py_buffer, buffers)
    arrow = pyarrow.LargeStringArray.from_buffers(3, offsets, raw, there)
    series = pandas.Series(pandas.array(arrow, dtype=KINDS["NaN"]))
    assert b"secret" in pyarrow.array(series.array).buffers()[2].to_pybytes()
    data = packed(series)
    assert b"secret" not in data
    assert unpacked(data).fillna("lost").tolist() == ["a", "lost", "b"]


def test_texts_beside_the_part_that_is_passed_are_not_written() -> None:
    data = packed(pandas.Series(["before", "this", "after"], dtype=KINDS["NaN"])[1:2])
    assert b"this" in data and b"before" not in data and b"after" not in data


def test_bytes_under_a_missing_text_are_checked_as_well() -> None:
    series = pandas.Series(["ab", None], dtype=KINDS["NaN"])
    data = packed(series)
    place = data.index(numpy.array([0, 2, 2], "<i8").tobytes())
    data[place : place + 24] = numpy.array([0, 0, 2], "<i8").tobytes()
    assert unpacked(data).fillna("lost").tolist() == ["", "lost"]
    at = data.index(b"ab", place)
    data[at : at + 2] = b"\xff\xff"
    with pytest.raises(columns.Broken, match="UTF-8"):
        unpacked(data)


def test_texts_of_arrow_that_are_no_utf8_are_refused_by_whoever_reads_them() -> None:
    buffers = [pyarrow.py_buffer(numpy.array([0, 2])), pyarrow.py_buffer(b"\xff\xff")]
    arrow = pyarrow.LargeStringArray.from_buffers(1, *buffers)
    data = packed(pandas.Series(pandas.array(arrow, dtype=KINDS["NaN"])))
    for storage in ("python", "pyarrow"):
        with (
            pandas.option_context("mode.string_storage", storage),
            pytest.raises(columns.Broken, match="UTF-8"),
        ):
            unpacked(data)
