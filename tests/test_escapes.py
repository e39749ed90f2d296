"""Escape sequences in texts of others: what acts on a terminal vanishes, the rest stays."""

import pytest

from divingbell.escapes import Filter, clean, one_line

HOSTILE = [
    "\x1b]0;a new title\x07",
    "\x1b]52;c;aGk=\x1b\\",  # writes to the clipboard
    "\x9d52;c;aGk=\x9c",
    "\x1b[2J",
    "\x1b[6n",  # makes the terminal type
    "\x9b6n",
    "\x1b[>4;2m",  # ends like a colour, and changes the keyboard
    "\x1b[?1049h",
    "\x1b[1 m",
    '\x1bP$q"p\x1b\\',
    "\x1b_Ga=T;AAAA\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bXstring\x1b\\",
    "\x1b(0",
    "\x1bc",
    "\x1b#8",
    "\x07",
    "\x7f",
    "\x00\x0e\x0f",
    "\x84\x85",
    "\x1b[" + "1;" * 500 + "m",
]


@pytest.mark.parametrize("sequence", HOSTILE)
def test_hostile_sequences_vanish_whole_and_in_pieces(sequence: str) -> None:
    assert clean(f"a{sequence}b") == "ab"
    pieces = Filter()
    assert "".join(map(pieces.feed, f"a{sequence}b")) == "ab"


@pytest.mark.parametrize("text", ["plain\tand\r\nsound\b", "é 漢字 🐚", "a\xa0b"])
def test_harmless_text_stays(text: str) -> None:
    assert clean(text) == text


def test_colours_stay_and_end() -> None:
    assert clean("\x1b[1;38;5;8mx") == "\x1b[1;38;5;8mx\x1b[0m"


def test_a_sequence_without_end_hides_one_line_at_most() -> None:
    assert clean("a\x1b]0;never ended\nb\x1b[12\nc") == "a\nb\nc"


def test_a_sequence_can_not_be_put_together_from_what_is_left() -> None:
    assert "\x1b" not in clean("\x1b\x1b[2J]0;x\x07 \x1b[\x1b[2J2J \x1b\x18[2J")


def test_names_become_one_plain_line() -> None:
    assert one_line("a\nb\x1b[31m\u202e") == r"a\nb\x1b[31m\u202e"
