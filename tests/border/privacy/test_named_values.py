"""Named values in code: read without running it, whatever the code is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.privacy import named_values
from divingbell.border.privacy.named_values import NamedValue, in_code


def test_arguments_of_tools_have_their_tool_as_origin() -> None:
    code = "from servers.crm import find as look\nfrom servers import shop as s\n"
    code += "look(name='a')\ns.buy(name='b')\nother(name='c')"
    found = [each for each in in_code(code) if isinstance(each.value, dict)]
    assert found == [
        NamedValue("crm.find", {"name": "a"}),
        NamedValue("shop.buy", {"name": "b"}),
        NamedValue("code", {"name": "c"}),
    ]


@pytest.mark.parametrize(
    "code",
    ["(" * 15_000, "x = " + "[" * 180 + "]" * 180, "\0", "a=1\n" * 5_000, "-" * 16_000, "\ud800"],
)
def test_code_of_any_kind_is_read_with_an_end(code: str) -> None:
    assert len(in_code(code)) <= named_values.MOST_VALUES


@given(st.text(max_size=300))
def test_no_text_makes_it_fail(code: str) -> None:
    in_code(code)
