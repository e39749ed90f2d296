"""Values that are passed between host and session come out as they went in, or are refused."""

import datetime
import decimal
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell_inside import columns, objects, parcels, texts, values
from tests import libraries

numpy = libraries.need("numpy")
pandas = libraries.need("pandas")
polars = libraries.need("polars")


def passed(value: Any, *libraries: str) -> Any:
    return parcels.unpack(columns.Reader(bytearray(b"".join(parcels.pack(value)))), libraries)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 5, 2.5, "", "é\n", b"", b"\x00", [], [1, [2]], (1, (2,)), {1: 2, "a": None},
        set(), {1, "a"}, frozenset({2}), 1j, decimal.Decimal("1.10"), uuid.UUID(int=5),
        datetime.date(2026, 1, 2), datetime.timedelta(1, 2, 3), float("inf"), "x" * 6_000_000,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_plain_data_is_kept_exactly(value: Any) -> None:
    found = passed(value)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(6).reshape(2, 3),
        numpy.arange(24).reshape(2, 3, 4).T,
        numpy.array(5.0),
        numpy.zeros((0, 3)),
        numpy.zeros((3, 0)),
        numpy.array([1.5], "f2"),
        numpy.array([1, 2], ">i4"),
        numpy.array([1 + 2j]),
        numpy.array([True, False]),
        numpy.array(["a", "bcd", "é"]),
        numpy.array([b"a", b"bc"]),
        numpy.array(["2026-01-01", "NaT"], "M8[ns]"),
        numpy.array([1, 2], "m8[D]"),
        numpy.array([["a", None], ["b", "c"]], object),
        numpy.array([1, "b", [2], None], object),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_are_kept_exactly(array: Any) -> None:
    found = passed(array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    numpy.testing.assert_array_equal(found, array)


def frame() -> Any:
    times = pandas.to_datetime(["2026-01-01", "2026-06-01", None])
    return pandas.DataFrame(
        {
            "float": [1.5, numpy.nan, numpy.inf],
            "small": numpy.array([1, 2, 3], "u1"),
            "bool": [True, False, True],
            "str": ["a", None, "é"],
            "string": pandas.array(["a", None, "c"], dtype="string"),
            "object": pandas.Series(["a", None, "b"], dtype=object),
            "mixed": pandas.Series(["a", 1, None], dtype=object),
            "nan in it": pandas.Series(["a", numpy.nan, None], dtype=object),
            "Int64": pandas.array([1, None, 3], dtype="Int64"),
            "boolean": pandas.array([True, None, False], dtype="boolean"),
            "Float32": pandas.array([1.5, None, 3], dtype="Float32"),
            "category": pandas.Categorical(["x", "y", None], ["y", "x"], ordered=True),
            "of numbers": pandas.Categorical([3, 1, 3]),
            "time": times,
            "zoned": times.tz_localize("Europe/Berlin"),
            "offset": times.tz_localize(datetime.timezone(datetime.timedelta(hours=2))),
            "span": pandas.to_timedelta([1, 2, None]),
        }
    )


FRAMES = {
    "as it is": lambda: frame(),
    "an index of texts": lambda: frame().set_index("str"),
    "an index of times": lambda: frame().set_index("zoned"),
    "an index of categories": lambda: frame().set_index("category"),
    "an index of objects": lambda: frame().set_index("mixed"),
    "levels": lambda: frame().set_index(["str", "Int64"]),
    "a range with steps": lambda: frame().iloc[::2],
    "names of an index": lambda: frame().rename_axis("rows").rename_axis("names", axis=1),
    "no rows": lambda: frame().iloc[:0],
    "no columns": lambda: frame()[[]],
    "nothing": lambda: pandas.DataFrame(),
    "names twice": lambda: pandas.concat([frame(), frame()], axis=1),
    "names that are no text": lambda: frame().rename(columns={"float": 1, "small": (1, 2)}),
    "numbers as names": lambda: pandas.DataFrame(numpy.zeros((2, 2))),
    "levels of names": lambda: pandas.DataFrame({("a", 1): [1], ("a", 2): [2]}),
    "levels with categories": lambda: frame().set_index(["category", "of numbers", "small"]),
    "categories that no row has": lambda: (
        frame().groupby(["category", "small"], observed=False).sum(numeric_only=True)
    ),
    "levels of names with categories": lambda: frame()[["bool", "category"]].set_axis(
        pandas.MultiIndex.from_arrays([pandas.Categorical(["x", "y"]), [1, 2]]), axis=1
    ),
    "big-endian": lambda: pandas.DataFrame({"a": numpy.array([1, 2], ">f8")}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_pandas_are_kept_exactly(name: str) -> None:
    given = FRAMES[name]()
    given.attrs = {"source": ("a", 1)}
    found = passed(given)
    pandas.testing.assert_frame_equal(found, given)
    assert found.attrs == given.attrs
    for axis in (0, 1):
        for one, other in zip(_levels(found.axes[axis]), _levels(given.axes[axis]), strict=True):
            pandas.testing.assert_index_equal(one, other, exact=True)


def _levels(index: Any) -> list[Any]:
    return list(index.levels) if isinstance(index, pandas.MultiIndex) else []


@pytest.mark.parametrize("column", frame().columns)
def test_series_of_pandas_are_kept_exactly(column: str) -> None:
    for series in (frame()[column], frame().set_index("str")[column] if column != "str" else None):
        if series is not None:
            pandas.testing.assert_series_equal(passed(series), series)


def polars_frame() -> Any:
    return polars.DataFrame(
        {
            "text": ["a", None],
            "number": [1, None],
            "float": [1.5, float("nan")],
            "date": [datetime.date(2026, 1, 1), None],
            "time": [datetime.datetime(2026, 1, 1), None],
            "span": [datetime.timedelta(1), None],
            "bool": [True, None],
            "list": [[1], [2, 3]],
            "struct": [{"a": 1}, {"a": 2}],
            "decimal": [decimal.Decimal("1.10"), None],
            "clock": [datetime.time(1, 2), None],
            "bytes": [b"a", None],
            "category": polars.Series(["x", None], dtype=polars.Categorical),
            "enum": polars.Series(["x", "y"], dtype=polars.Enum(["y", "x"])),
            "small": polars.Series([1, 2], dtype=polars.UInt8),
            "wide": polars.Series([2**100, None], dtype=polars.Int128),
        }
    ).with_columns(zoned=polars.col("time").dt.replace_time_zone("Europe/Berlin"))


def test_frames_of_polars_are_kept() -> None:
    from polars.testing import assert_frame_equal

    assert_frame_equal(passed(polars_frame()), polars_frame())
    assert_frame_equal(passed(polars.DataFrame()), polars.DataFrame())
    assert passed(polars.Series("name", ["a", None])).to_list() == ["a", None]


POLARS = {
    "dates": polars.Series([datetime.date(2026, 1, 1), None, datetime.date(1, 1, 1)]),
    "times": polars.Series([datetime.time(1, 2, 3, 4), None]),
    "nulls": polars.Series([None, None]),
    "wide": polars.Series([1, 2**100, None], dtype=polars.Int128),
    "small and wide": polars.Series([1, None], dtype=polars.Int128),
    "wide without a sign": polars.Series([1, 2**127 + 5, None], dtype=polars.UInt128),
    "halves": polars.Series([1.5, None, float("nan")], dtype=polars.Float16),
    "decimals": polars.Series([decimal.Decimal("1.10"), None], dtype=polars.Decimal(10, 2)),
    "bytes": polars.Series([b"\x00", None]),
    "no bytes": polars.Series([None, None], dtype=polars.Binary),
    "milliseconds": polars.Series([datetime.datetime(2026, 1, 1)], dtype=polars.Datetime("ms")),
    "a name with a sign": polars.Series("$set", [datetime.date(2026, 1, 1)]),
}


@pytest.mark.parametrize("name", POLARS)
@pytest.mark.parametrize("rows", [None, 0])
def test_types_of_polars_are_kept_also_by_a_session_without_it(name: str, rows: Any) -> None:
    from polars.testing import assert_frame_equal, assert_series_equal

    given = POLARS[name].slice(0, rows)
    assert_series_equal(passed(given, "polars"), given)
    assert_series_equal(passed(passed(given, "pandas"), "polars"), given)
    frame = given.to_frame()
    assert_frame_equal(passed(passed(frame, "pandas"), "polars"), frame)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda column: column + pandas.Timedelta(hours=5), polars.Datetime("us")),
        (lambda column: column.dt.tz_localize("UTC"), polars.Datetime("ms", "UTC")),
        (lambda column: column.dt.year, polars.Int32),
        (lambda column: column.astype(str), polars.String),
        (lambda column: column.dt.date.map(lambda day: [day.year]), polars.List(polars.Int64)),
        (lambda column: column + pandas.Timedelta(days=1), polars.Date),
        (lambda column: column.dt.date, polars.Date),
    ],
)
def test_a_column_that_code_has_changed_has_the_type_of_what_it_holds(
    change: Any, kind: Any
) -> None:
    inside = passed(polars.DataFrame({"day": [datetime.date(2026, 1, 1)]}), "pandas")
    changed = inside.assign(day=change(inside["day"]))
    assert changed.attrs == {"polars": {"day": "Date"}}
    assert passed(changed, "polars")["day"].dtype == kind


def test_times_of_day_that_python_would_cut_are_refused() -> None:
    times = polars.Series("t", [1], dtype=polars.Int64).cast(polars.Time).to_frame()
    with pytest.raises(columns.NotHeld, match=r"the column 't' has .* nanoseconds.*cast\(Int64\)"):
        parcels.pack(times)


def test_frames_of_polars_become_frames_of_pandas() -> None:
    found = passed(polars_frame(), "pandas")
    assert list(found.columns) == polars_frame().columns
    assert str(found["number"].dtype) == "Int64" and str(found["text"].dtype) == "str"
    assert str(found["zoned"].dtype) == "datetime64[us, Europe/Berlin]"
    assert found["list"].tolist() == [[1], [2, 3]]
    assert found["date"].iloc[0] == pandas.Timestamp("2026-01-01")


def test_frames_of_pandas_become_frames_of_polars_and_an_index_becomes_columns() -> None:
    given = frame().drop(columns=["mixed", "offset", "nan in it"])
    found = passed(given.set_index(["str", "Int64"]), "polars")
    assert found.columns[:2] == ["str", "Int64"]
    assert found["str"].to_list() == ["a", None, "é"]
    assert found["zoned"].dtype == polars.Datetime("us", "Europe/Berlin")
    assert found["category"].to_list() == ["x", "y", None]


def test_levels_with_categories_become_columns_of_polars() -> None:
    given = frame().set_index(["category", "of numbers"])[["small"]]
    found = passed(given, "polars")
    assert found["category"].to_list() == ["x", "y", None]
    assert found["of numbers"].to_list() == [3, 1, 3]


@pytest.mark.parametrize("column", ["mixed", "offset"])
def test_what_polars_has_not_is_refused_with_the_other_library(column: str) -> None:
    with pytest.raises(columns.NotHeld, match=rf"the column '{column}' .*frame=\"pandas\""):
        passed(frame()[[column]], "polars")


class Liar:
    """Says that it is something else, and fails whoever asks."""

    @property
    def __class__(self) -> type:
        return pandas.DataFrame  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"it was asked for {name}")

    __array__ = __dataframe__ = __arrow_c_stream__ = __len__ = __iter__ = __getattr__


class Subclass(pandas.DataFrame):  # type: ignore[misc, name-defined]
    @property
    def index(self) -> Any:
        raise AssertionError("it was asked for its index")


class Number(int):
    pass


REFUSED = {
    "an object": (lambda: object(), "is of the type object.*DataFrames and Series"),
    "a liar": (lambda: Liar(), "is of the type Liar"),
    "a subclass": (lambda: Subclass(), "a kind of DataFrame: make a plain DataFrame"),
    "a kind of int": (lambda: Number(5), "is of the type Number, a kind of int"),
    "a record array": (lambda: numpy.rec.array([(1, 2)]), "a kind of ndarray"),
    "a masked array": (lambda: numpy.ma.array([1]), "a kind of ndarray"),
    "records": (lambda: numpy.array([(1, 2)], [("a", int), ("b", int)]), "no plain one: use asty"),
    "a long double": (lambda: numpy.array([1], "g"), "no plain one"),
    "objects": (lambda: numpy.array([object()], object), r"at \[0\] that is of the type object"),
    "an object in a list": (lambda: [1, object()], r"at \[1\] that is of the type object"),
    "an object in a dict": (lambda: {"a": [object()]}, r"at \.a\[0\] that is of the type object"),
    "periods": (
        lambda: pandas.DataFrame({"p": pandas.period_range("2026", periods=2, freq="D")}),
        r"the column 'p' has the type period\[D\].*astype.*parquet",
    ),
    "an object in a column": (
        lambda: pandas.DataFrame({"o": [1, object()]}),
        r"the column 'o' holds something at \[1\] that is of the type object",
    ),
    "half a character": (
        lambda: pandas.DataFrame({"a": ["\ud800"]}, dtype=object),
        "lone surrogate",
    ),
    "half a character in text": (lambda: "\ud800", "lone surrogate"),
    "an index of periods": (
        lambda: pandas.Series([1, 2], pandas.period_range("2026", periods=2, freq="D")),
        "the index is a PeriodIndex: use reset_index",
    ),
    "a level of intervals": (
        lambda: frame().groupby([pandas.cut(frame()["small"], 2), "str"], observed=True).size(),
        r"the index at level 'small' with its categories has the type interval.*astype\(str\)",
    ),
    "a level of periods without a name": (
        lambda: frame().set_index([pandas.period_range("2026", periods=3, freq="D"), "str"]),
        r"the index at level number 0 has the type period\[D\].*astype\(str\)",
    ),
    "a level of names": (
        lambda: pandas.DataFrame(
            [[1]],
            columns=pandas.MultiIndex.from_arrays(
                [pandas.period_range("2026", periods=1, freq="D"), ["a"]], names=["when", "what"]
            ),
        ),
        r"the index of the columns at level 'when' has the type period",
    ),
    "a column of several names": (
        lambda: pandas.DataFrame({("a", 1): pandas.period_range("2026", periods=2, freq="D")}),
        r"the column \('a', 1\) has the type period",
    ),
    "an object as a name": (lambda: pandas.Series([1], name=object), "rename it"),
    "too many items": (lambda: {"a": list(range(400_000))}, "too many items: pass its parts"),
    "one item too many": (lambda: tuple(range(values.MAX_ITEMS - 1)), "too many items: pass"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cant_be_passed_is_refused_with_what_to_do(name: str) -> None:
    make, words = REFUSED[name]
    with pytest.raises(columns.NotHeld, match=words):
        parcels.pack(make())


@pytest.mark.parametrize("large", [tuple(range(values.MAX_ITEMS - 2)), "x" * values.MAX_TEXT])
def test_an_item_as_large_as_may_be_can_stand_among_others(large: Any) -> None:
    value = [*["x" * 100] * (objects.PART // 200), large, 1]
    assert passed(value) == value


def test_more_texts_than_are_read_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_TEXTS", 5)
    with pytest.raises(columns.NotHeld, match="the column 'b' has too many texts, 5 may be"):
        parcels.pack(pandas.DataFrame({"a": ["x"] * 2, "b": ["y"] * 2}))


def test_a_zone_that_is_not_known_is_told_with_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(b"".join(parcels.pack(frame()[["zoned"]])))
    data[:] = data.replace(b"Europe/Berlin", b"Europe/Atlant")
    with pytest.raises(columns.NotHeld, match="the column 'zoned' has a time zone that is not kno"):
        parcels.unpack(columns.Reader(data))


@given(
    st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"])))),
    st.sampled_from(["object", "str", "string"]),
)
def test_texts_of_all_kinds_are_kept_exactly(texts: list[str | None], dtype: str) -> None:
    series = pandas.Series(texts, dtype=dtype)
    pandas.testing.assert_series_equal(passed(series), series)


@pytest.mark.parametrize("dtype", ["str", "object"])
def test_texts_are_joined_across_the_pieces_that_they_are_read_in(dtype: str) -> None:
    count = 2 * texts.ROWS + 5
    series = pandas.Series(
        [f"é{number}" if number % 3 else None for number in range(count)], dtype=dtype
    )
    pandas.testing.assert_series_equal(passed(series), series)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(columns.NotHeld, match="pandas nor polars is not installed"):
        passed(frame())
