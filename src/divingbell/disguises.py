r"""Characters in disguise: escaped for an address (%2f), for JSON (\u002f, \/) or for HTML (&#47;).

Whatever is looked for in a text may be escaped in it, in part or all of it, once or several times.
So the escapes are undone before it is looked for. What acts on a terminal counts for nothing: it
is taken out of texts later on, and what it had kept apart would come together.
"""

import functools
import html
import itertools
import json
import re
import string
from collections import deque
from collections.abc import Iterable, Iterator
from html.entities import html5
from urllib.parse import unquote

from divingbell import text as words

LONGEST = 50
"""Characters that one character takes at most: the longest name in HTML, escaped four times."""
MOST = words.LONGEST_SEQUENCE
"""Characters that all of these patterns take in at most."""
_ALWAYS = frozenset(string.ascii_letters + string.digits + "+/-_=")
"""Characters that are always among them, so that most servers share one pattern."""
_SHORT = {"/": "/", '"': '"', "'": "'", "\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_AGAIN = "(?:{}){{0,3}}"
"""An escape that may be escaped itself, up to so often."""


class Disguises:
    """The escapes of some characters."""

    def __init__(self, characters: Iterable[str]) -> None:
        self._pattern, self._with_acting = _patterns(frozenset(characters) | _ALWAYS)

    def views(self, text: str, size: int) -> "list[View]":
        """Return the ways to read a text that has disguises; none if it has none.

        What acts on a terminal may keep characters apart, and it may also have them in it.
        """
        views = [View(self._pattern, text, size)] if _occurs(self._pattern, text, size) else []
        if _occurs(words.ACTING, text, size):
            views.append(View(self._with_acting, text, size))
        return views


def _occurs(pattern: "re.Pattern[str]", text: str, size: int) -> bool:
    pieces = range(0, len(text), size)
    return any(pattern.search(text, at, at + size + MOST) for at in pieces)


class View:
    """A text without its disguises, piece by piece: no escape is cut in two.

    While a pattern looks through a text, nothing else in this process runs.
    """

    def __init__(self, pattern: "re.Pattern[str]", text: str, size: int) -> None:
        self._pattern, self._text, self._size = pattern, text, size

    def pieces(self) -> Iterator[tuple[int, str]]:
        """Yield where each piece of about this size begins, and what it says."""
        at = 0
        while at < len(self._text):
            said = self._pattern.split(self._window(at))  # text and escapes by turns
            end, wanted = at + sum(map(len, said)), at + self._size
            while end - len(said[-1]) > wanted:
                end -= len(said.pop())
            if end > wanted and len(said) % 2:  # it is text, and may be cut anywhere
                said[-1] = said[-1][: wanted - end]
                end = wanted
            said[1::2] = map(_character, said[1::2])
            yield at, "".join(said)
            at = end

    def located(self, indices: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield where each of these characters of the pieces begins and ends. They are sorted."""
        wanted, before = deque(indices), 0
        for at, said in self.pieces():
            if not wanted:
                return
            inside = []
            while wanted and wanted[0] < before + len(said):
                inside.append(wanted.popleft() - before)
            places = _located(self._pattern, self._window(at), inside)
            yield from ((at + start, at + end) for start, end in places)
            before += len(said)

    def _window(self, at: int) -> str:
        # An escape that begins before the end of a piece ends before that of its window.
        return self._text[at : at + self._size + MOST]


def _located(
    pattern: "re.Pattern[str]", text: str, indices: Iterable[int]
) -> Iterator[tuple[int, int]]:
    wanted = iter(indices)
    index, plain, last = next(wanted, None), 0, 0
    end_of_text = (len(text), len(text), 0)
    for start, end, length in itertools.chain(_steps(pattern, text), [end_of_text]):
        while index is not None and index < plain + start - last:
            at = last + index - plain
            yield at, at + 1
            index = next(wanted, None)
        plain += start - last
        while index is not None and index < plain + length:
            yield start, end
            index = next(wanted, None)
        if index is None:
            return
        plain, last = plain + length, end


def _steps(pattern: "re.Pattern[str]", text: str) -> Iterator[tuple[int, int, int]]:
    for match in pattern.finditer(text):
        yield match.start(), match.end(), len(_character(match[0]))


@functools.lru_cache(32)
def _patterns(characters: frozenset[str]) -> tuple["re.Pattern[str]", "re.Pattern[str]"]:
    # Each branch begins with one plain character, so that the search skips all else at full speed,
    # and each takes a few characters at most: the time grows with the text, whatever it is.
    plain = sorted(character for character in characters if character.isascii())
    others = sorted(characters.difference(plain))
    pairs = _grouped(f"{ord(character):02x}" for character in plain)
    percent = "|".join([pairs, *map(_percent, others)])
    short = "".join(re.escape(_SHORT[character]) for character in plain if character in _SHORT)
    octal = _grouped(f"{ord(character):03o}" for character in plain)
    hexadecimal = _grouped(f"{ord(character):x}" for character in sorted(characters))
    ways = (
        rf"u00(?:{pairs})|U000000(?:{pairs})|x(?:{pairs})|{octal}|[{short}]"
        rf"|u\{{0{{0,4}}(?:{hexadecimal})\}}"
    )
    units = "|".join([ways, *map(_units, others)])
    named = (name for name, value in html5.items() if value in characters)
    names = "|".join(name for name in named if name.endswith(";"))
    decimal = _grouped(str(ord(character)) for character in sorted(characters))
    entity = (
        rf"#0{{0,7}}(?:{decimal})(?:;|(?![0-9]))"
        rf"|#[xX]0{{0,6}}(?:{hexadecimal})(?:;|(?![0-9a-fA-F]))|{names}"
    )
    one = (
        rf"%(?:25{_AGAIN.format(25)}(?:{percent})|{percent})"
        rf"|\\\\{{0,15}}+(?:{units})"
        rf"|&(?:amp;{_AGAIN.format('amp;')}(?:{entity})|{entity})"
    )
    return re.compile(f"({one})"), re.compile(f"({one}|{words.ACTING_SEQUENCE})")


def _grouped(numbers: Iterable[str]) -> str:
    """One expression for numbers that share all digits but the last: `2[bBdDfF]|3[0123456789]`."""
    by_head: dict[str, str] = {}
    for number in numbers:
        by_head[number[:-1]] = by_head.get(number[:-1], "") + number[-1]
    return "|".join("".join(map(_digits, head)) + _digits(last) for head, last in by_head.items())


def _digits(digits: str) -> str:
    return f"[{digits}{digits.upper()}]" if not digits.isdecimal() or len(digits) > 1 else digits


def _percent(character: str) -> str:
    data = character.encode("utf-8", "surrogatepass")
    return "%(?:25){0,4}".join("".join(map(_digits, f"{byte:02x}")) for byte in data)


def _units(character: str) -> str:
    """An expression for a character as JSON escapes it, or as Python does.

    JSON has one unit of UTF-16 for it, or two.
    """
    data = character.encode("utf-16-be", "surrogatepass").hex()
    units = [data[at : at + 4] for at in range(0, len(data), 4)]
    long = r"\\{1,16}".join("u" + "".join(map(_digits, unit)) for unit in units)
    long += f"|U{''.join(map(_digits, f'{ord(character):08x}'))}"
    return long if ord(character) > 0xFF else f"{long}|x{''.join(map(_digits, data[2:]))}"


def _character(escape: str) -> str:
    """The character that an escape stands for; none for what acts on a terminal."""
    return _meaning(escape) if escape[0] in "%&\\" else ""


@functools.lru_cache(8192)
def _meaning(escape: str) -> str:
    if escape[0] == "%":
        return unquote(re.sub("%(?:25)+(?=[0-9a-fA-F]{2})", "%", escape))
    if escape[0] == "&":
        return html.unescape(re.sub("&(?:amp;)+(?=.)", "&", escape))
    bare = re.sub(r"\\+", r"\\", escape)
    if bare[1] in "xU" or bare[2:3] == "{":
        return chr(int(bare[2:].strip("{}"), 16))
    if bare[1].isdecimal():
        return chr(int(bare[1:], 8))
    return str(json.loads(f'"{bare}"')) if bare[1] != "'" else "'"
