"""Any name of a server becomes a Python identifier, and no two become the same."""

import keyword
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell.gateway.catalog.naming import MAX_LENGTH, RESERVED, identifier, is_safe, unique
from tests.tool_lists import tool_lists

HOSTILE = [
    "../../x",
    "import os",
    "x(): import os #",
    "class",
    "from",
    "None",
    "auth-method",
    "__import__",
    "__init__",
    "",
    "_",
    "____",
    "\N{PARTY POPPER}",
    "日本語",
    "a" * 10_000,
    "\N{PARTY POPPER}" * 10_000,
    "_" * 10_000,
    "a\nb",
    "a\0b",
    "\ud800",
    "\x1b[31mred",
    "call",
    "UNSET",
    "resources",
    "README",
    "2fa",
    "ªº",
    "ﬁle",
    "a\u202eb",
]


def _assert_safe(name: str) -> None:
    assert name.isidentifier() and name.isascii()
    assert not keyword.iskeyword(name)
    assert not name.startswith("_")
    assert len(name) <= MAX_LENGTH
    assert is_safe(name)


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:20])
def test_any_name_becomes_an_identifier(name: str) -> None:
    found = identifier(name)
    _assert_safe(found)
    assert found not in RESERVED
    assert identifier(name) == found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("create_issue", "create_issue"),
        ("linear_logoutAll", "linear_logoutAll"),
        ("get-structured-content", "get_structured_content"),
        ("../../x", "x"),
        ("x(): import os #", "x_import_os"),
        ("class", "class_"),
        ("__import__", "import_"),
        ("créer une issue", "creer_une_issue"),
        ("2fa", "n_2fa"),
        ("call", "call_"),
        ("type", "type"),
        ("", "unnamed"),
    ],
)
def test_an_identifier_can_be_guessed_from_the_name(name: str, expected: str) -> None:
    assert identifier(name) == expected


def test_long_names_that_differ_at_the_end_stay_different() -> None:
    assert identifier("a" * 5000 + "x") != identifier("a" * 5000 + "y")


def test_of_names_that_collide_the_exact_one_keeps_its_name() -> None:
    found = unique(["get-user", "get_user", "get.user"])
    assert found["get_user"] == "get_user"
    assert len(set(found.values())) == 3
    assert all(name.startswith("get_user") for name in found.values())


def test_without_an_exact_one_the_plain_name_means_nothing() -> None:
    # It must not silently mean another tool when the server adds one.
    assert "get_user" not in unique(["get-user", "get.user"]).values()


def test_names_that_are_taken_are_not_given_again() -> None:
    found = unique(["x", "y"], taken={"x"})
    assert found["y"] == "y"
    assert found["x"] != "x"


def test_reserved_names_can_be_those_of_parameters() -> None:
    assert unique(["list", "resources", "call"], reserved={"call"}) == {
        "list": "list",
        "resources": "resources",
        "call": "call_",
    }


@settings(max_examples=150, deadline=None, database=None)
@given(st.lists(st.one_of(st.text(), st.sampled_from(HOSTILE), st.text("aA-_. ", max_size=4))))
def test_identifiers_are_distinct_in_any_order(names: list[str]) -> None:
    found = unique(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
    for name in found.values():
        _assert_safe(name)
    shuffled = names.copy()
    random.Random(1).shuffle(shuffled)
    assert unique(shuffled) == found


def test_most_tools_of_real_servers_keep_their_names() -> None:
    for server, tools in tool_lists().items():
        names = [tool["name"] for tool in tools]
        found = unique(names)
        assert len(set(found.values())) == len(set(names)), server
        for name, python in found.items():
            plain = name.strip("_").replace("-", "_").replace(".", "_")
            assert python in (plain, f"{plain}_")
