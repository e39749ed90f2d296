"""What a person sees of a call before saying yes: all of it that matters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.gateway.policy import preview as module
from divingbell.gateway.policy.preview import MAX_PREVIEW

LONG = "x" * 3000


def preview(arguments: dict[str, Any], schema: dict[str, Any] | None = None) -> str:
    shown = module.preview(arguments, schema)
    assert shown is not None
    return shown


def schema(*names: str, **properties: Any) -> dict[str, Any]:
    return {"properties": {name: {"type": "string"} for name in names} | properties}


def test_arguments_are_shown_one_a_line_in_the_order_of_the_schema() -> None:
    shown = preview(
        {
            "number": 1,
            "extra": [],
            "inner": {"password": "hunter2", "list": [{"x_token": "hunter2", "n": 1}]},
            "repo": "x\nreason: all is well",
            "odd": {1, 2},
        },
        schema("repo", "gone", "inner", "number"),
    )
    assert shown.splitlines() == [
        'repo: "x\\nreason: all is well"',
        'inner: {"password": "hunter2", "list": [{"x_token": "hunter2", "n": 1}]}',
        "number: 1",
        "extra: []",
        "odd: (can't be shown)",
    ]


def test_long_arguments_push_no_other_out_of_sight() -> None:
    """The code chooses the order, and would put what matters behind what does not."""
    long = {f"a{number}": LONG for number in range(8)}
    for arguments in ({**long, "f0": "DELETE"}, {"f0": "DELETE", **long}):
        lines = preview(arguments, schema("f0", *long)).splitlines()
        assert lines[0] == 'f0: "DELETE"'
        assert [line.partition(":")[0] for line in lines[1:]] == list(long)
        lengths = {len(line) for line in lines[1:]}
        assert len(lengths) == 1 and "3,002 characters in all" in lines[-1]


def test_nor_do_parts_of_an_argument() -> None:
    long = {f"a{number}": LONG for number in range(8)}
    for value in ({**long, "f0": "DELETE"}, [*long.values(), "DELETE"], [[long, "DELETE"]]):
        shown = preview({"value": value})
        assert '"DELETE"' in shown and len(shown) <= MAX_PREVIEW


def test_a_short_one_is_whole_and_the_long_ones_share_what_is_left() -> None:
    shown = preview({"short": "s" * 900, "long": "l" * 100_000, "longer": "m" * 200_000})
    assert "s" * 900 in shown and "100,002 characters" in shown and "200,002 characters" in shown
    assert MAX_PREVIEW - 10 < len(shown) <= MAX_PREVIEW


@pytest.mark.parametrize(
    "arguments",
    [
        {f"name_{number}": LONG for number in range(60)},
        {f"name_{number}": 1 for number in range(1000)},
        {"n" * 5000: 1},
        {f"{'n' * 150}{number}": "" for number in range(30)},
    ],
)
def test_what_nobody_could_read_is_not_asked_about(arguments: dict[str, Any]) -> None:
    assert module.preview(arguments) is None


def test_a_name_can_not_pass_for_a_name_and_a_value() -> None:
    shown = preview({'path: "/tmp"\nmode': "x", "see\u202en": 1})
    assert shown.splitlines() == ['"path: \\"/tmp\\"\\nmode": "x"', '"see\\u202en": 1']


@pytest.mark.parametrize(
    "name",
    ["password", "db_password", "apiKey", "api-Key", "client_secret", "token", "access_token"],
)
def test_a_secret_that_the_server_has_declared_is_not_shown(name: str) -> None:
    shown = preview({name: "hunter2"}, schema(name))
    assert "hunter2" not in shown and "7 characters" in shown


@pytest.mark.parametrize(
    "name",
    ["page_token", "nextPageToken", "secret_path", "token_type", "max_tokens", "secretary", "key"],
)
def test_a_name_that_merely_has_the_word_in_it_hides_nothing(name: str) -> None:
    assert preview({name: "hunter2"}, schema(name)) == f'{name}: "hunter2"'


def test_a_schema_may_say_that_a_value_is_secret() -> None:
    shown = preview({"pin": "1234"}, schema(pin={"type": "string", "format": "password"}))
    assert "1234" not in shown


@pytest.mark.parametrize("value", ["rm -rf /", "/etc/shadow", "C:\\x", "x" * 300, ["a"], 7])
def test_what_can_be_no_secret_is_shown_under_any_name(value: Any) -> None:
    assert "•" not in preview({"password": value}, schema("password"))


def test_the_code_can_not_hide_a_value_by_a_name_of_its_own() -> None:
    assert "DELETE" in preview({"password": "DELETE"}, schema("path"))
    assert "DELETE" in preview({"password": "DELETE"})


def test_large_arguments_are_not_read_to_their_end() -> None:
    shown = preview({"a": [0] * 1_000_000, "b": {str(n): [n] for n in range(100_000)}})
    assert shown.startswith("a: [0, 0, 0,") and "… 999,801 more" in shown and "99,801 more" in shown
    assert preview({"a": [[1] * 150, [2] * 150]}).count("2") < 150
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    assert "a: [[[[" in preview({"a": deep})


VALUES = st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.text())


@given(st.dictionaries(st.text(max_size=20), VALUES, max_size=8))
def test_nothing_invisible_is_shown_and_no_name_is_left_out(arguments: dict[str, Any]) -> None:
    shown = preview(arguments)
    assert len(shown) <= MAX_PREVIEW
    assert not any(sign in shown for sign in "\x1b\x9b\x07\r\u202e\u2066\u200b\U000e0041\ufeff")
    assert len(shown.split("\n")) == max(1, len(arguments))
