"""Names that a lenient server may take for one and the same."""

from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.errors import ToolFailed
from divingbell.settings.argument_names import MAX_LENGTH, means, plain

SPELLINGS = [
    "owner_id", "Owner_ID", "OWNER_ID", "ownerId", "owner-id", "owner id", "owner.id", "ownerid",
    "owner_id ", " owner_id", "owner_id\t", "owner_id\n", "owner_id\0", "owner_id\0x", "owner__id",
    "owner_id\u200b", "own\u00ader_id", "\ufeffowner_id", "owner\u2060_id", "owner_id\u3164",
    "owner_id\u115f", "owner_id\ufe0f", "owner_id\U000e0041", "owner_id\u202e", "owner\u00a0id",
    "ｏｗｎｅｒ＿ｉｄ", "ⓞwner_id", "ówner_id", "o\u0301wner_id", "owner_ıd", "owner_İd",
    "оwner_id", "ownеr_id", "owner_id[]", "owner_id[0]", "owner_id[x]", "owner_id.x",
    "owner_id:", "$owner_id",
]  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_every_spelling_of_a_name_is_that_name(name: str) -> None:
    assert means(name, plain("owner_id"))


@pytest.mark.parametrize(
    "name", ["owner", "owner_idx", "the_owner_id", "id", "", "_", "x[owner_id]"]
)
def test_another_name_is_another(name: str) -> None:
    assert not means(name, plain("owner_id"))


def test_names_of_signs_alone_are_told_apart() -> None:
    assert plain("_") != plain("__") and not means("$", plain("_"))


def test_a_name_without_end_is_refused_unread() -> None:
    with pytest.raises(ToolFailed, match="1,000 are the most") as caught:
        means("o" * (MAX_LENGTH + 1), plain("owner"))
    assert caught.value.code == "tool_arguments"


@given(
    st.text(ascii_letters + digits, min_size=1), st.sampled_from(" _-\0\t\u200b\u00ad\u2062\ufeff")
)
def test_no_sign_at_either_end_makes_another_name(name: str, sign: str) -> None:
    assert plain(f"{sign}{name}{sign}{sign}") == plain(name.swapcase())


@given(st.text(max_size=MAX_LENGTH))
def test_any_name_is_a_spelling_of_itself(name: str) -> None:
    assert means(name, plain(name))
