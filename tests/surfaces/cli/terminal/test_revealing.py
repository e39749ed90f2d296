"""Real values in the places of tokens."""

import pytest

from divingbell.errors import DivingbellError
from divingbell.surfaces.cli.terminal.revealing import Revealer, certain

KNOWN = {"[EMAIL_482715]": "ann@example.com", "[NAME_111111]": "Ann\x1b[2J\nLee"}


async def reveal(token: str) -> str:
    if token == "[GONE_999999]":
        raise DivingbellError("the session has ended")
    return KNOWN.get(token, token)


@pytest.mark.anyio
async def test_values_stand_between_marks_and_unknown_tokens_stay() -> None:
    revealer = Revealer(reveal, colours=False)
    text = "to [EMAIL_482715], [CARD_123456] and [GONE_999999]"
    await revealer.prepare(text)
    assert revealer.marked(text) == "to ‹ann@example.com›, [CARD_123456] and [GONE_999999]"


@pytest.mark.anyio
async def test_a_value_is_one_line_and_can_not_act_on_the_terminal() -> None:
    revealer = Revealer(reveal, colours=False)
    await revealer.prepare("[NAME_111111]")
    assert revealer.marked("[NAME_111111]") == "‹Ann\\x1b[2J\\nLee›"


@pytest.mark.anyio
async def test_without_a_person_nothing_is_revealed() -> None:
    revealer = Revealer(None, colours=False)
    await revealer.prepare("[EMAIL_482715]")
    assert revealer.marked("[EMAIL_482715]") == "[EMAIL_482715]"


@pytest.mark.anyio
async def test_what_is_laid_out_is_as_wide_as_what_is_shown() -> None:
    revealer = Revealer(reveal, colours=False)
    await revealer.prepare("[EMAIL_482715]")
    held = revealer.held("a [EMAIL_482715] b")
    assert len(held) == len(revealer.with_marks(held)) == len("a ‹ann@example.com› b")


@pytest.mark.anyio
async def test_columns_of_a_table_stay_in_their_places() -> None:
    values = {"[EMAIL_482715]": "ann@example.com", "[EMAIL_482716]": "bo@example.com"}
    ann, bo = values

    async def known(token: str) -> str:
        return values[token]

    revealer = Revealer(known, colours=False)
    table = f"0  {ann}  {bo}    1\n1   {bo}  {ann}   22"
    boxed = f"│ {ann} ┆ 1 │\n│ {bo}  ┆ 2 │"
    prose = f"to {ann} and {bo} too"
    await revealer.prepare(table)
    assert revealer.marked(table).split("\n") == [
        "0 ‹ann@example.com›‹bo@example.com›   1",
        "1  ‹bo@example.com›‹ann@example.com›  22",
    ]
    assert revealer.marked(boxed) == "│‹ann@example.com›┆ 1 │\n│‹bo@example.com› ┆ 2 │"
    assert revealer.marked(prose) == "to ‹ann@example.com› and ‹bo@example.com› too"


@pytest.mark.parametrize(
    ("text", "end"),
    [("plain", 5), ("to [EMAIL_48", 3), ("[", 0), ("list [1, 2", 10), ("[EMAIL_482715]", 14)],
)
def test_half_a_token_at_the_end_has_to_wait(text: str, end: int) -> None:
    assert certain(text) == end
