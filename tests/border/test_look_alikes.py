"""Text that only looks like a token names nothing any more; tokens that were given out stay."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from divingbell.border.look_alikes import defuse, tokens_in

ALIKE, GIVEN = "[EMAIL_482715]", "[NAME_123456]"
TEXTS = st.text(alphabet="[]AB_1 ", max_size=30) | st.sampled_from(
    [ALIKE, GIVEN, f"[{ALIKE}EMAIL_123456]", "[EMAIL_[EMAIL_482715]482715]"]
)


def test_look_alikes_are_defused_in_names_and_values() -> None:
    value = {ALIKE: [f"mail to {ALIKE}, {GIVEN}", 5, None, {"x": (ALIKE,)}], GIVEN: True}
    assert defuse(value, {GIVEN}) == {
        "(EMAIL_482715)": [f"mail to (EMAIL_482715), {GIVEN}", 5, None, {"x": ["(EMAIL_482715)"]}],
        GIVEN: True,
    }
    assert value[ALIKE][3] == {"x": (ALIKE,)}  # type: ignore[index]


def test_what_has_none_is_returned_as_it_is() -> None:
    value = {"a": ["[x]", "[EMAIL_1]", GIVEN, b"[EMAIL_482715]"]}
    assert defuse(value, {GIVEN}) is value
    assert defuse(ALIKE) == "(EMAIL_482715)"


def test_nothing_is_nested_too_deeply() -> None:
    value: Any = ALIKE
    for _ in range(100_000):
        value = [value]
    changed = defuse(value)
    for _ in range(100_000):
        [changed] = changed
    assert changed == "(EMAIL_482715)"


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_no_look_alike_is_left_or_made(value: Any) -> None:
    changed = defuse(value, {GIVEN})
    assert tokens_in(changed) <= {GIVEN}
    assert defuse(changed, {GIVEN}) is changed
