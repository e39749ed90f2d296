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


def _size(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(_size, value.values())) + 1
    if isinstance(value, list):
        return sum(map(_size, value)) + 1
    return len(value) + 1 if isinstance(value, str) else 1


@pytest.mark.parametrize(
    "code",
    [
        'x="";' * 300 + "[" * 100 + "x," * 2_000 + "]" * 100,
        "[" * 150 + "'" + "1," * 3_000 + "'" + "]" * 150,
        'x="";' * 300 + "[" + "x," * 2_000 + "]" + "==a" * 2_000,
        "{0:" * 90 + "[" + "x," * 3_000 + "]" + "}" * 90,
    ],
)
def test_what_is_part_of_many_values_is_not_read_with_each(code: str) -> None:
    found = in_code(code + "\nsave(last_name='Leeson')")
    # What was begun is finished, and what stands alone is read once more.
    most = (named_values.MOST_READINGS + 3) * len(code)
    assert sum(_size(each.value) for each in found) <= most
    assert NamedValue("code", {"last_name": "Leeson"}) in found


def test_what_is_compared_in_a_row_is_compared_with_its_neighbours() -> None:
    found = [each.value for each in in_code("'a' == first_name != 'b' == last_name")]
    pairs = [each for each in found if isinstance(each, dict)]
    assert {"first_name": "a"} in pairs and {"first_name": "b"} in pairs
    assert {"last_name": "b"} in pairs and {"last_name": "a"} not in pairs


@given(st.text(max_size=300))
def test_no_text_makes_it_fail(code: str) -> None:
    in_code(code)
