"""Words and code of a model as lines for the terminal."""

import functools
import html
import io
import re
from typing import TYPE_CHECKING, Any

from divingbell.text import uncovered

if TYPE_CHECKING:
    from rich.console import Console

MOST_HIGHLIGHTED = 20_000
"""Characters of code that get colours: they are looked through again with each line that comes."""
MOST_RENDERED = 50_000
"""Characters of one paragraph that are laid out; more than that is shown as it stands."""
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def block_end(text: str) -> int | None:
    """Return where the first block of Markdown ends, or None while it may go on.

    A block is a paragraph, a list or a table up to an empty line, or a fence with all that is in
    it.
    """
    place, fence, has_words = 0, "", False
    for line in text.splitlines(keepends=True):
        if not line.endswith("\n"):
            return None
        opening = _FENCE.match(line)
        if fence:
            stripped = line.strip()
            if len(stripped) >= len(fence) and set(stripped) == {fence[0]}:
                return place + len(line)
        elif opening:
            if has_words:
                return place
            fence = opening[1]
        elif line.strip():
            has_words = True
        elif has_words:
            return place + len(line)
        place += len(line)
    return None


def uncovered_entities(text: str) -> str:
    """Return Markdown in which no entity, such as `&#x202e;`, becomes a character that can't be
    seen: it is written out."""
    return _ENTITY.sub(_uncovered_entity, text)


def _uncovered_entity(entity: re.Match[str]) -> str:
    meant = html.unescape(entity[0])
    shown = uncovered(meant)
    return entity[0] if shown == meant else shown


def rendered(text: str, columns: int, colours: bool) -> list[str]:
    """Return a block of Markdown as lines of at most so many columns."""
    if len(text) > MOST_RENDERED:
        return text.strip("\n").split("\n")
    from rich.markdown import Markdown

    # Links are written out: behind a name that can be clicked may be any address.
    made = Markdown(text.strip("\n"), code_theme="ansi_dark", hyperlinks=False)
    return _lines(made, columns, colours)


def wrapped(text: str, columns: int) -> list[str]:
    """Return plain text as lines of at most so many columns."""
    from rich.text import Text

    return _lines(Text(text.strip("\n")[-MOST_RENDERED:]), columns, False)


def highlighted(code: str, colours: bool) -> list[str]:
    """Return the lines of Python code, with colours if there are any."""
    if not colours or len(code) > MOST_HIGHLIGHTED:
        return code.split("\n")
    from pygments import highlight  # type: ignore[import-untyped]

    lexer, formatter = _highlighting()
    coloured: str = highlight(code, lexer, formatter)
    return coloured.split("\n")


def folded(line: str, columns: int, colours: bool) -> list[str]:
    """Return a line of code, which may have colours, as lines of at most so many columns."""
    from rich.text import Text

    return _lines(Text.from_ansi(line), columns, colours)


@functools.cache
def _highlighting() -> tuple[Any, Any]:
    from pygments.formatters import TerminalFormatter  # type: ignore[import-untyped]
    from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

    return PythonLexer(stripnl=False, ensurenl=False), TerminalFormatter()


def _lines(made: Any, columns: int, colours: bool) -> list[str]:
    console = _console(columns, colours)
    with console.capture() as captured:
        console.print(made)
    lines = [line.rstrip(" ") for line in captured.get().split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


@functools.lru_cache(4)
def _console(columns: int, colours: bool) -> "Console":
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=columns,
        force_terminal=colours,
        color_system="standard" if colours else None,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
