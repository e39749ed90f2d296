"""Blocks of Markdown: where they end, and how they are laid out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.surfaces.cli.terminal import markdown
from divingbell.surfaces.cli.terminal.answers import Words
from divingbell.surfaces.cli.terminal.look import Look
from divingbell.surfaces.cli.terminal.revealing import OPEN, Revealer


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo\n\n"]),
        ("\n\none\n\n", ["\n\none\n\n"]),
        ("words\n```python\nx\n\ny\n```\nrest", ["words\n", "```python\nx\n\ny\n```\n"]),
        ("```\nnot closed\n\n", []),
        ("~~~~\n~~~\n~~~~\n", ["~~~~\n~~~\n~~~~\n"]),
        ("- a\n- b\n\n", ["- a\n- b\n\n"]),
        ("goes on", []),
    ],
)
def test_a_block_ends_where_nothing_can_change_it_any_more(text: str, blocks: list[str]) -> None:
    found = []
    while (end := markdown.block_end(text)) is not None:
        found.append(text[:end])
        text = text[end:]
    assert found == blocks


@given(st.text("ab `~\n-|#*", max_size=200), st.integers(1, 20))
def test_blocks_are_the_same_in_whatever_pieces_they_come(text: str, size: int) -> None:
    def blocks(pieces: list[str]) -> list[str]:
        found, rest = [], ""
        for piece in pieces:
            rest += piece
            while (end := markdown.block_end(rest)) is not None:
                assert end > 0
                found.append(rest[:end])
                rest = rest[end:]
        return [*found, rest]

    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert blocks(pieces) == blocks([text])


@given(st.text("ab cd`~\n-|#*1.日é", max_size=300), st.integers(20, 60))
def test_no_line_is_wider_than_the_screen(text: str, columns: int) -> None:
    from rich.cells import cell_len

    for line in markdown.rendered(text, columns, colours=False):
        assert cell_len(line) <= columns


def test_links_show_their_address_and_colours_are_left_out_where_there_are_none() -> None:
    [line] = markdown.rendered("**see** [here](http://example.com)", 60, colours=False)
    assert line == "see here (http://example.com)"
    [coloured] = markdown.rendered("**see**", 60, colours=True)
    assert "\x1b[1m" in coloured


def test_code_has_colours_up_to_a_length() -> None:
    assert "\x1b[" in markdown.highlighted("import os", colours=True)[0]
    assert markdown.highlighted("import os\n", colours=False) == ["import os", ""]
    long = "x = 1\n" * markdown.MOST_HIGHLIGHTED
    assert markdown.highlighted(long, colours=True)[0] == "x = 1"


def test_a_long_line_of_code_is_folded_and_keeps_its_words_and_colours() -> None:
    line = "    total = first_part + second_part + third_part"
    assert markdown.folded(line, 30, colours=False) == [
        "    total = first_part +",
        "second_part + third_part",
    ]
    [coloured] = markdown.highlighted(f"{line}  # all", colours=True)
    folded = markdown.folded(coloured, 30, colours=True)
    assert len(folded) == 3 and folded[-1] == "\x1b[37mall\x1b[0m"


@pytest.mark.parametrize("text", ["a &#x202e;b", "&#57344;forged&#xE001;", "c&shy;d", "&rlm;*e*"])
def test_words_have_no_entity_that_becomes_what_cannot_be_seen(text: str) -> None:
    shown: list[str] = []
    look = Look(is_terminal=True)
    words = Words(shown.append, look, Revealer(None, colours=False))
    words.add(f"{text} &amp; &eacute;", "text")
    words.end()
    said = "".join(shown)
    assert said.replace("\n", "").isprintable()
    assert "& é" in said and OPEN not in said
