"""What tables of polars tell. The sandbox of the tests has none, so it is asked for here; those of
pandas are in tests/session/test_told_columns.py."""

import json

from divingbell_inside.told_columns import MOST_VALUES, ToldColumns
from tests import libraries

polars = libraries.need("polars")


def told_by(code: str) -> dict[str, list[str | int]]:
    names: dict[str, object] = {"polars": polars}
    part = compile(code, "<cell>", "exec")
    columns = ToldColumns(names)
    columns.begin([part])
    exec(part, names)
    told = dict[str, list[str | int]]()
    look = columns.fresh
    while written := look():  # so much at once, and the rest with the next look
        for name, values in json.loads(written).items():
            told.setdefault(name, []).extend(values)
        look = columns.all
    return told


def test_personal_columns_are_told_and_no_others() -> None:
    code = "people = polars.DataFrame({'last_name': ['Sayrefitz', None], 'n': [1, 2]})"
    assert told_by(code) == {"last_name": ["Sayrefitz"]}


def test_a_series_is_told_by_its_name() -> None:
    assert told_by("one = polars.Series('first_name', ['Annabel'])") == {"first_name": ["Annabel"]}
    assert told_by("one = polars.Series('n', [1])") == {}


def test_of_a_long_column_both_ends_are_told() -> None:
    size = MOST_VALUES + 10
    code = f"long = polars.DataFrame({{'last_name': [f'Name{{n}}' for n in range({size})]}})"
    told = told_by(code)["last_name"]
    assert len(told) == MOST_VALUES
    assert (told[0], told[-1]) == ("Name0", f"Name{size - 1}")


def test_each_value_is_told_once() -> None:
    names: dict[str, object] = {"people": polars.DataFrame({"last_name": ["Sayrefitz"]})}
    columns = ToldColumns(names)
    columns.begin([compile("people", "<cell>", "eval")])
    assert b"Sayrefitz" in columns.fresh()
    columns.begin([compile("people", "<cell>", "eval")])
    assert columns.all() == b""
