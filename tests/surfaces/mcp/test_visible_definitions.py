"""Definitions of upstream tools, as clients get to see them."""

from divingbell.surfaces.mcp import visible_definitions
from divingbell.tool import Tool


def test_annotations_that_are_none_are_left_out() -> None:
    tool = Tool("s", "add", "s", "add", annotations={"readOnlyHint": {"no": "flag"}})
    assert visible_definitions.tool("add", tool).annotations is None


def test_only_names_that_clients_can_take_are_names() -> None:
    for name in ("get_issue", "a.b-c", "x" * 128):
        assert visible_definitions.NAME.fullmatch(name)
    for name in ("", "../../x", "import os", "x" * 129, "a\n", "é"):
        assert not visible_definitions.NAME.fullmatch(name)
