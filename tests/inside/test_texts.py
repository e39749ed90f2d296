"""Columns of texts are written and read in bounded steps, whatever is in them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell_inside import columns, parcels, texts
from tests import libraries

numpy = libraries.need("numpy")
pandas = libraries.need("pandas")
polars = libraries.need("polars")

SEPARATORS = texts.SEPARATORS


def written(chunks: list[list[Any]]) -> columns.Reader:
    writer = columns.Writer()
    spec = texts.put_texts(writer, chunks)
    return columns.Reader(bytearray(b"".join(writer.pieces({"column": spec}))))


def read(reader: columns.Reader, count: int) -> list[list[str]]:
    chunks, missing = texts.take_texts(reader, reader.header["column"], count)
    assert missing is None
    return list(chunks)


@given(st.lists(st.text(st.sampled_from(f"aé\U0001f600{SEPARATORS}"))))
def test_texts_with_the_characters_that_separate_them_are_kept(items: list[str]) -> None:
    assert [text for chunk in read(written([items]), len(items)) for text in chunk] == items


@given(
    st.lists(st.one_of(st.none(), st.text(st.sampled_from(f"aé{SEPARATORS}"), max_size=3))),
    st.sampled_from([pandas.NA, numpy.nan]),
)
def test_missing_texts_of_pandas_without_pyarrow_are_kept(items: Any, lost: Any) -> None:
    with pandas.option_context("mode.string_storage", "python"):
        series = pandas.Series(items, dtype=pandas.StringDtype("python", na_value=lost))
        found = parcels.unpack(columns.Reader(bytearray(b"".join(parcels.pack(series)))))
    pandas.testing.assert_series_equal(found, series)
    assert all(item is lost for item in found[found.isna()])


@given(st.lists(st.one_of(st.none(), st.text(st.sampled_from(f"aé{SEPARATORS}"), max_size=3))))
def test_missing_texts_of_polars_are_kept(items: Any) -> None:
    series = polars.Series("name", items, dtype=polars.String)
    data = bytearray(b"".join(parcels.pack(series)))
    assert parcels.unpack(columns.Reader(data), ("polars",)).equals(series, null_equal=True)


@pytest.mark.parametrize("length", [1, 3 * texts.LONG], ids=["short", "long"])
def test_texts_of_each_length_are_kept_with_accents_and_without(length: int) -> None:
    for sign in ("a", "é", "\U0001f600"):
        items = [sign * length, "", sign, *["b" * length] * 3]
        assert read(written([items]), len(items)) == [items]


@pytest.mark.parametrize("shown", ["a", SEPARATORS], ids=["joined", "one by one"])
def test_half_a_character_is_refused_and_makes_no_whole_one_with_the_next(shown: str) -> None:
    with pytest.raises(columns.NotHeld, match="lone surrogate"):
        written([[shown, "\ud83d", "\ude00"]])


def test_long_texts_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "SIZE", 10)
    items = ["é" * 3, "", "abcd", "", "x" * 50, "", "y", *["z"] * 30]
    chunks = read(written([items[:4], items[4:]]), len(items))
    assert [text for chunk in chunks for text in chunk] == items
    for chunk in chunks:
        assert len(chunk) == 1 or sum(len(text.encode()) for text in chunk) <= 10
    assert len(chunks) < 10


def test_many_texts_are_read_in_lists_of_a_bounded_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "ROWS", 7)
    chunks = read(written([[""] * 20]), 20)
    assert [len(chunk) for chunk in chunks] == [7, 7, 6]
