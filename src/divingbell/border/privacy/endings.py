r"""Endings: from where on what follows a text may still change which values are found in it.

A text that comes in pieces is shown as far as it is decided. No shape but that of private keys
goes on in the next line, so that a whole line is decided, unless a word behind a number may follow.
Of a line that has not ended, the last token may go on; and numbers, accounts and dates have blanks.
These rules know what all shapes have in common and not each of them: they hold back too much,
never too little.
"""

import re
from collections.abc import Iterator, Sequence

from divingbell.border.privacy.kinds import PERSONAL
from divingbell.border.privacy.secrets import LONGEST_KEY, LONGEST_TOKEN
from divingbell.border.privacy.shape import LONGEST_WORDS, NEAR_BEHIND, Shape

SPAN = 80
"""Characters of a value that may have blanks, with those that decide about its end: a bank account
has 66 at most."""
LONGEST_MARKED = 450
"""Characters of a value that may have any signs but blanks: an e-mail address has 400 at most."""
LONGEST_WORD = 10
"""Letters of a word in a value: `September`."""
MOST_WORDS = 3
"""So many words in a row are no part of a value: `12 of March 1985` has two."""
MOST_LETTERS = 12
"""Letters of words in a row that are within a value: `of September`."""
LONGEST_UNLESS_BEHIND = 4
"""Characters after a number that are asked whether something else is meant: `": `."""
_ASKED_BEHIND = frozenset("\\\"'")
"""What those begin with."""

# Read from right to left, so that the time is in proportion to what is read.
_TOKEN = re.compile(rf"[^\s\"'<>,:()!*$|@`]{{0,{LONGEST_TOKEN}}}")
"""Signs of keys and tokens, which may be long."""
_MARKED = re.compile(rf"\S{{0,{LONGEST_MARKED}}}")
_QUOTED = re.compile(rf"(?:\S{{0,{LONGEST_MARKED}}}\")?[\w .+-]{{0,60}}\w\"")
"""An e-mail address whose mailbox stands in quotation marks."""
_PART = re.compile(r"[^ ]+")
_APART = re.compile(r"(?: {3,}|[^\S ])(?=\S)")
_DIGIT = re.compile(r"\d")
_JOINING = re.compile(r"[\w()+.,#/-]+")
"""A part that may stand within a value with blanks."""
_WORD_AT_END = re.compile(rf"(?<![^\W\d_])[^\W\d_]{{1,{LONGEST_WORD}}}\Z")
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----")
_KEY_MAY_BEGIN = re.compile(r"-----B[A-Z0-9 -]{0,60}\Z")
_KEY_MAY_END = re.compile(r"-----(?:E(?:N(?:D(?! [A-Z0-9 ]{0,45}-----)[A-Z0-9 -]{0,60})?)?)?\Z")
_KEY_LINES = re.compile(r"[\sA-Za-z0-9+/=\\]*+\Z")
_MAY_HAVE_BLANKS = re.compile(r"(?<!\\)[\s.]|\\[^dwSbB./+*?()\[\]{}|^$@-]|\[\^|\[:|\(\?\w*[sx]")


def may_have_blanks(expression: str) -> bool:
    """Say whether a pattern from the settings may match a blank. In doubt it may."""
    return bool(_MAY_HAVE_BLANKS.search(expression))


class Endings:
    """The ends of texts in which values of some shapes are looked for."""

    def __init__(self, shapes: Sequence[Shape]) -> None:
        kinds = {shape.kind for shape in shapes}
        self._may_have_blanks = bool(kinds & PERSONAL)
        self._has_keys = "PRIVATE_KEY" in kinds
        self._patterns = (_TOKEN, _MARKED, *([_QUOTED] if self._may_have_blanks else []))
        self._before_words = [shape for shape in shapes if shape.words_behind]
        self._before_others = [shape for shape in shapes if shape.unless_behind]

    def open_from(self, text: str) -> int:
        """Return from where on values may go on behind the text, or change."""
        places = [len(text)]
        line = text.rfind("\n") + 1
        if line < len(text):
            places += self._in_line(text, line)
        if self._has_keys and "-----B" in text:
            places += _open_keys(text)
        for shape in self._before_words:
            places += _before_word(text, shape)
        if not _ASKED_BEHIND.isdisjoint(text[-LONGEST_UNLESS_BEHIND:]):
            for shape in self._before_others:
                places += _before_other(text, shape)
        return min(places)

    def _in_line(self, text: str, line: int) -> Iterator[int]:
        backwards = text[max(line, len(text) - LONGEST_TOKEN) :][::-1]
        for pattern in self._patterns:
            if begin := pattern.match(backwards):
                yield len(text) - begin.end()
        if self._may_have_blanks:
            yield from _spanning(text, line)


def _spanning(text: str, line: int) -> Iterator[int]:
    """Yield where a value with blanks may have begun."""
    at = max(line, len(text) - SPAN)
    at = max([at, *(apart.end() for apart in _APART.finditer(text, at))])
    begin: int | None = None
    before: int | None = None
    words = letters = 0
    for part in _PART.finditer(text, at):
        is_word = not _DIGIT.search(part[0])
        words, letters = (words + 1, letters + len(part[0])) if is_word else (0, 0)
        if not is_word and begin is None:
            begin = before if before is not None else part.start()
        elif (is_word and not _JOINING.fullmatch(part[0])) or (
            words >= MOST_WORDS and letters > MOST_LETTERS
        ):
            begin = None
        # A word may be the month of a day that follows, even behind the end.
        before = part.start() if _WORD_AT_END.search(part[0]) else None
    if begin is None and text.endswith(" "):
        begin = before
    if begin is not None:
        yield begin


def _open_keys(text: str) -> Iterator[int]:
    if may_begin := _KEY_MAY_BEGIN.search(text, max(0, len(text) - 80)):
        yield may_begin.start()
    for begin in _KEY_BEGINS.finditer(text):
        stop = text.find("-----", begin.end())
        if stop >= 0:
            is_open = bool(_KEY_MAY_END.match(text, stop))
        else:
            is_short = len(text) - begin.end() <= LONGEST_KEY + len("-----")
            is_open = is_short or bool(_KEY_LINES.match(text, begin.end()))
        if is_open:
            yield begin.start()
            return


def _before_word(text: str, shape: Shape) -> Iterator[int]:
    """Yield where a number begins that a word behind it may speak of."""
    at = max(0, len(text) - NEAR_BEHIND - LONGEST_WORDS - shape.longest)
    for match in shape.pattern.finditer(text, at) if _DIGIT.search(text, at) else ():
        if len(text) - match.end() <= NEAR_BEHIND + LONGEST_WORDS:
            yield match.start()
            return


def _before_other(text: str, shape: Shape) -> Iterator[int]:
    """Yield where a number begins that is none if it has the wrong neighbour."""
    at = max(0, len(text) - LONGEST_UNLESS_BEHIND - shape.longest)
    for match in shape.pattern.finditer(text, at):
        end = match.end()
        if len(text) - end <= LONGEST_UNLESS_BEHIND and text[end : end + 1] in _ASKED_BEHIND:
            yield match.start()
            return
