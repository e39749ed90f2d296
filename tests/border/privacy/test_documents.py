"""JSON and tables are found in texts; what is too much has a clear outcome."""

import json
from typing import Any

import pytest

from divingbell.border.privacy import documents
from divingbell.border.privacy.documents import TooMuch, html_tables_in, json_in, rows_in

PRETTY = json.dumps({"a": ["b"]}, indent=2)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": "b"}', [{"a": "b"}]),
        (f"Two were found:\n\n  {PRETTY}\nThat is all [of it].", [{"a": ["b"]}]),
        ('{"a": 1}\n{"a": 2.50}\nno\n[3]\n', [{"a": "1"}, {"a": "2.50"}, ["3"]]),
        (f"{PRETTY}\n{PRETTY}", [{"a": ["b"]}] * 2),
        (f"[INFO] begins\n{PRETTY}", [{"a": ["b"]}]),
        ("no [JSON] at all {here}", []),
        ("[broken\n{", []),
        ("", []),
        (f"[{'9' * 5000}]", [["9" * 5000]]),
        ("[NaN]", [[None]]),
        ('["\ud800"]', [["\ud800"]]),
    ],
)
def test_json_is_found_wherever_a_line_begins_with_it(text: str, values: list[Any]) -> None:
    assert list(json_in(text)) == values


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000])
def test_json_that_is_nested_too_deeply_or_too_heavy_says_so(text: str) -> None:
    with pytest.raises(TooMuch, match=r"nested too deeply|more values"):
        list(json_in(text))


def test_json_is_weighed_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_DECODER", None)
    with pytest.raises(TooMuch, match="more values than are read at once"):
        list(json_in(f"[{'[],' * 200_000}[]]"))


def test_lines_that_begin_as_json_does_are_not_read_to_the_end_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = 0
    decoded = documents._decoded

    def counting(text: str, decoder: Any) -> Any:
        nonlocal read
        read += len(text)
        return decoded(text, decoder)

    monkeypatch.setattr(documents, "_decoded", counting)
    text = "[x\n" * 20_000
    assert list(json_in(text)) == []
    assert read <= (documents.MOST_TRIES + 1) * len(text)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id,email\n1,a@x.org\n", [["id", "email"], ["1", "a@x.org"]]),
        ('id;name\n1;"Lee; Ann"\r\n', [["id", "name"], ["1", "Lee; Ann"]]),
        ("id\tname\n1\tAnn\n", [["id", "name"], ["1", "Ann"]]),
        ('id,street\n1,"12 Main St\nOslo"\n', [["id", "street"], ["1", "12 Main St\nOslo"]]),
        ("email\na@x.org\n", [["email"], ["a@x.org"]]),
        ("", []),
    ],
)
def test_tables_are_read_by_what_stands_between_their_cells(
    text: str, rows: list[list[str]]
) -> None:
    assert list(rows_in(text)) == rows


@pytest.mark.parametrize(
    "rest", ["x" * 2_000_000, "x," * 1_000_000, '"' + "\n" * 2_000_000, '"\n",' * 500_000]
)
def test_a_row_that_is_too_long_ends_a_table(rest: str) -> None:
    rows = rows_in(f"id,email\n1,a@x.org\n{rest}")
    assert [next(rows), next(rows)] == [["id", "email"], ["1", "a@x.org"]]
    with pytest.raises(TooMuch):
        next(rows)


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        (
            '<div><table border="1"><thead><tr style="x"><th></th><th>a&amp;b</th></tr></thead>\n'
            "<tbody><tr>\n <th>0</th>\n <td> 1 <i>2</i></td></tr></tbody></table></div> 5",
            [[["", "a&b"], ["0", "1 2"]]],
        ),
        ("<table><tr><td>1<tr><td>2<table><tr><TD>3</TD>", [[["1"], ["2"]], [["3"]]]),
        ("<td>1</td> <table> <tr", [[[]]]),
        (f"<table><tr><td>&#{'9' * 9000};", [[["\ufffd"]]]),
        ("", []),
    ],
)
def test_tables_of_html_are_read(text: str, tables: list[list[list[str]]]) -> None:
    assert list(html_tables_in(text)) == tables


@pytest.mark.parametrize(
    "piece", ["<", "<td", "<td>", "<tr><td>x", "<table><tr>", "<table><tr><td>&"]
)
def test_hostile_html_is_read_to_its_end(piece: str) -> None:
    assert sum(map(len, html_tables_in(f"<table><tr>{piece * 100_000}"))) <= 100_001
