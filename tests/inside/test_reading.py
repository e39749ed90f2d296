"""Which cells only read. In doubt none does: who says so wrongly loses state in an accident."""

import ast
import collections
import contextlib
import io
import sys
from typing import Any

import pytest

from divingbell_inside import output
from divingbell_inside.reading import MAX_VALUES, only_reads


class Counting(int):
    """A number whose text is counted: to look at it is to change it."""


NAMES: dict[str, Any] = {
    "x": 1,
    "text": "abc",
    "rows": [1, 2, {"a": (3.5, None)}],
    "table": {"a": [1], "b": {2}},
    "by_default": collections.defaultdict(list),
    "odd": Counting(1),
    "hidden": [[[Counting(1)]]],
    "keys": {Counting(1): 1},
    "many": list(range(MAX_VALUES + 1)),
    "function": lambda: 1,
    "module": sys,
}
NAMES["round"] = NAMES["function"]
NAMES["endless"] = [1]
NAMES["endless"].append(NAMES["endless"])


def _reads(source: str, stdout: Any = None) -> bool:
    ours = output.Stdout.__new__(output.Stdout)
    with contextlib.redirect_stdout(stdout or ours):
        return only_reads(ast.parse(source), NAMES)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 + 1",
        "x",
        "x; text",
        "-x ** 2 if x > 0 else not x",
        "rows[2]['a'][0]",
        "rows[1:]",
        "table",
        "(x, [x], {x}, {'x': x})",
        "f'{x:.2f} {text!r}'",
        "print(x, text, sep=', ')",
        "len(rows), sorted(text), sum([1, 2]), str(x)",
        "x in rows and text == 'abc'",
    ],
)
def test_looking_at_plain_values_changes_nothing(source: str) -> None:
    assert _reads(source)


@pytest.mark.parametrize(
    "source",
    [
        "y = 1",
        "x += 1",
        "del x",
        "import os",
        "def f(): pass",
        "for _ in rows: pass",
        "(y := 1)",
        "[y for y in rows]",
        "lambda: x",
        "await x",
        "rows.append(1)",
        "text.upper()",
        "rows.pop",
        "table['a'].append(1)",
        "rows[0] = 1",
        "by_default['new']",
        "odd",
        "odd + 1",
        "f'{odd}'",
        "hidden",
        "keys",
        "module",
        "function()",
        "round(x)",  # here it is a function of the user's
        "unknown",
        "unknown()",
        "exec('y = 1')",
        "setattr(x, 'y', 1)",
        "print(x, file=function)",
        "print(*rows)",
        "max(rows, key=function)",
        "many",
        "endless",
        " + ".join(["1"] * 200),
    ],
)
def test_whatever_else_could_be_a_change_counts_as_one(source: str) -> None:
    assert not _reads(source)


def test_printing_into_an_object_of_the_users_changes_it() -> None:
    assert not _reads("print(x)", io.StringIO())


def test_a_function_of_pythons_that_was_replaced_is_the_users(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = abs
    monkeypatch.setattr("builtins.abs", lambda value: theirs(value))
    assert not _reads("abs(x)")
