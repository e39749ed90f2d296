"""Learned values: texts that are known to be someone's, found again wherever they stand."""

import bisect
import functools
import html
import itertools
import json
import re
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from divingbell.border.privacy import views
from divingbell.border.privacy.find import Find, merged
from divingbell.border.privacy.ordinary_words import ORDINARY
from divingbell.border.privacy.scanner import Scanner
from divingbell.errors import ConfigError

MOST_VALUES = 100_000
SHORTEST = 3
LONGEST = 512
"""Characters of a value that are looked for; of longer ones, the first so many."""
SHORT_WORD = 5
"""Words with fewer letters are found as names are written: `Will`, `WILL`, and not `will`."""
SHORTEST_NUMBER = 5
"""Digits of a number at least: shorter ones stand everywhere."""
LONG_NAME = 5
"""Characters from which on an underscore beside a value is no part of a word."""
SHORTEST_CUT = 5
"""Characters of a value at least, of which only the beginning is shown: `ann.l...`."""
COMMON = frozenset({
    "the", "and", "for", "not", "you", "are", "was", "his", "her", "all", "any", "can", "had",
    "has", "one", "out", "who", "its", "our", "new", "now", "old", "see", "way", "may", "day",
    "get", "use", "man", "two", "how", "let", "put", "say", "she", "too", "from", "with", "that",
    "this", "have", "were", "what", "when", "your", "they", "will", "true", "false", "null",
    "none", "nan", "nat", "<na>", "yes", "unknown", "other", "test", "user", "admin", "name", "n/a",
    "value", "data", "type", "date", "time", "list", "dict", "string", "number",
    # Words of MCP and of our answers: in their places they must stay what they are.
    "content", "contents", "structuredcontent", "structured", "iserror", "session_id", "status",
    "output", "text", "image", "audio", "resource", "resources", "resource_link", "mimetype", "uri",
    "blob", "annotations", "_meta", "messages", "message", "role", "assistant", "system", "model",
    "prompt", "prompts", "tool", "tools", "completion", "values", "hasmore", "total", "progress",
    "logger", "level", "error", "code", "notes", "calls", "images", "displays", "limit", "state",
    "usage", "ledger", "kept", "rewound", "fresh", "result", "results", "inputrequests", "params",
    "method", "jsonrpc", "title", "description", "size", "path", "bytes", "items", "enum",
    "properties", "required", "object", "array", "boolean", "integer", "schema", "requestedschema",
})  # fmt: skip
"""Words that are not learned, even where a field holds them."""
STEP = 16
"""So many times as large is each generation of values as the one after it. With 100,000 values
there are three at most, and a value that is added is built into each of them a few times."""
MOST_GENERATIONS = 8
"""Where values of others are added as they are, without being built anew."""
PIECE = 1 << 17

_WORD = re.compile(r"\w")
_LETTER = re.compile(r"[^\W_]")
_HALF = re.compile("[\ud800-\udfff]")
_SPECIAL = re.compile(r"""["'\\&<>\n\r\t]""")
_QUOTES = frozenset("\\\"'")
_CUT = re.compile(r"\.\.\.|…")
"""What follows a value that was cut, by pandas and by polars."""
_PLAIN = ("NAME", "ADDRESS")
"""Kinds whose values may be plain words."""
_CUT_BEGINS = re.compile(r"(?:\.\.?|\n\[?)\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LEFT_OUT = "\n["
"""What stands before it where our own output was cut."""
_STARTS = re.compile(r"(?<!\w)\w|(?<=\\[nrt])\w|(?<=%..)\w|[^\w\s]")
_WORD_STARTS = re.compile(r"(?<!\w)\w|(?<=\\[nrt])\w")


class _Form(NamedTuple):
    """A value as it may be written, in small letters."""

    text: str
    kind: str
    is_name: bool
    """Whether it counts only with a capital letter."""
    meant: str = ""
    """The value, where this is an escaped form of it."""


class _Generation:
    """Forms that were built into one automaton."""

    def __init__(self, forms: list[_Form]) -> None:
        from ahocorasick_rs import AhoCorasick, Implementation, MatchKind

        self.forms = sorted(forms)
        self._texts = [form.text for form in self.forms]
        self._shaped = [form for form in self.forms if form.kind not in _PLAIN]
        self._shaped_texts = [form.text for form in self._shaped]
        automaton = AhoCorasick(
            self._texts,
            matchkind=MatchKind.LeftmostLongest,
            store_patterns=False,
            implementation=Implementation.ContiguousNFA,
        )
        self.matches = automaton.find_matches_as_indexes

    def beginning_with(self, text: str, *, is_plain: bool = False) -> _Form | None:
        """Return a form that begins so; one that is no name or address, if it is a plain word."""
        forms, texts = self.forms, self._texts
        if is_plain:
            forms, texts = self._shaped, self._shaped_texts
        at = bisect.bisect_left(texts, text)
        is_there = at < len(texts) and texts[at].startswith(text)
        return forms[at] if is_there else None

    def meant_by(self, text: str) -> str:
        """Return the value that this is an escaped form of, if it is one."""
        form = self.beginning_with(text)
        return form.meant if form is not None and form.text == text else ""

    def open_from(self, low: str, starts: Iterable[int]) -> int:
        """Return the first of these places from which on a text may be the start of a form."""
        if low[-1] == "\n" and not self._has_line_ends:
            return len(low)
        for start in starts:
            # With fewer letters it may be any of many.
            may_begin = low[start : start + SHORTEST] in self._heads
            may_begin = may_begin or len(low) - start < SHORTEST
            if may_begin and self.beginning_with(low[start:]) is not None:
                return start
        return len(low)

    @functools.cached_property
    def _has_line_ends(self) -> bool:
        return any("\n" in form.text for form in self.forms)

    @functools.cached_property
    def _heads(self) -> frozenset[str]:
        return frozenset(form.text[:SHORTEST] for form in self.forms)


class Learned:
    """Values that are looked for letter by letter, large or small, plain or escaped.

    They are found as whole words: `Ann` is not found in `Annual`. Of one that was cut, as tables do
    it, the beginning is found: `Ann Le...`. May be used by several threads.

    Raises:
        ConfigError: the package that searches is missing.
    """

    def __init__(self) -> None:
        try:
            import ahocorasick_rs  # noqa: F401
        except ImportError:
            raise ConfigError(
                "Learned values need a package that is not installed: "
                "`pip install 'divingbell[privacy]'`."
            ) from None
        self._known: set[str] = set()
        self._generations: tuple[_Generation, ...] = ()
        self._lock = threading.Lock()
        self.longest = 0
        """The most characters that a find can have together with what decides about it."""

    def __len__(self) -> int:
        return len(self._known)

    def add(self, values: Iterable[tuple[str, str]]) -> int:
        """Learn values, each with its kind. Return how many found no room.

        Values that are too short or too common to mean anyone are passed over.
        """
        refused = 0
        with self._lock:
            forms: list[_Form] = []
            for value, kind in values:
                low = folded(value.strip())[:LONGEST]
                if low in self._known or not _says_something(low):
                    continue
                if len(self._known) >= MOST_VALUES:
                    refused += 1
                    continue
                self._known.add(low)
                forms += _forms(value.strip()[:LONGEST], kind)
            if forms:
                self._grow(forms)
        return refused

    def add_all_of(self, other: "Learned") -> int:
        """Learn all that another one knows. Return how many values found no room: all, or none.

        What it has built is shared: to build it again would take a second, and an event loop may
        wait for this.
        """
        with other._lock:
            known, theirs = frozenset(other._known), other._generations
        with self._lock:
            fresh = known - self._known
            if len(self._known) + len(fresh) > MOST_VALUES:
                return len(fresh)
            self._known |= fresh
            both = {*self._generations, *(theirs if fresh else ())}
            generations = sorted(both, key=lambda each: len(each.forms), reverse=True)
            if small := generations[MOST_GENERATIONS - 1 :]:
                forms = itertools.chain.from_iterable(each.forms for each in small)
                generations[MOST_GENERATIONS - 1 :] = [_Generation([*forms])]
            self.longest = max(self.longest, other.longest)
            self._generations = (*generations,)
            return 0

    def _grow(self, forms: list[_Form]) -> None:
        generations = list(self._generations)
        while generations and len(generations[-1].forms) < STEP * len(forms):
            forms = [*generations.pop().forms, *forms]
        self.longest = max(self.longest, max(len(form.text) for form in forms) + 4)
        self._generations = (*generations, _Generation(forms))

    def finds(self, text: str) -> list[Find]:
        """Return the finds, sorted and disjoint."""
        return views.finished(Scanner(()).scanning(text, self))

    def meant_by(self, found: str) -> str:
        """Return what was found as it was learned, where it is escaped: `Müller` for `M%C3%BCller`;
        else as it is."""
        low = folded(found)
        meant = (generation.meant_by(low) for generation in self._generations)
        return next(filter(None, meant), found)

    def plain(self, text: str) -> Generator[None, None, list[Find]]:
        """Yield after each piece of work; return the finds in the text as it stands."""
        found: list[Find] = []
        for generation in self._generations:
            for at in range(0, len(text), PIECE):
                found += _finds_in_piece(text, at, generation, self.longest)
                yield
        if "..." in text or "…" in text:
            found += yield from self._cut_values(text)
        return merged(found)

    def open_from(self, text: str) -> int:
        """Return where a value begins that may go on behind the text, or the end of the text."""
        place = self._open_from(text)
        # What is left of the mark behind a value that was cut may follow.
        if mark := _CUT_BEGINS.search(text, max(0, len(text) - 2)):
            first = max(0, mark.start() - self.longest, text.rfind("\n", 0, mark.start()) + 1)
            cut = _finds_at_end(text, first, mark.start(), self._generations)
            place = min([place, *(find.start for find in cut)])
        return place

    def _open_from(self, text: str) -> int:
        generations = self._generations
        if not generations or not text:
            return len(text)
        first = max(0, len(text) - self.longest)
        low = folded(text[first:])
        starts = [start.start() for start in _STARTS.finditer(low)]
        return first + min(generation.open_from(low, starts) for generation in generations)

    def _cut_values(self, text: str) -> Generator[None, None, list[Find]]:
        """Find values of which only the beginning is there, in lines of their own."""
        found: list[Find] = []
        last = done = 0
        for mark in _CUT.finditer(text):
            end = mark.start()
            end -= len(_LEFT_OUT) if text.endswith(_LEFT_OUT, last, end) else 0
            start = max(last, end - self.longest, text.rfind("\n", last, end) + 1)
            found += _finds_at_end(text, start, end, self._generations)
            # What one mark has looked at no other looks at again.
            last = mark.end()
            if end - done > PIECE:
                done = end
                yield
        return found


def _finds_at_end(
    text: str, start: int, end: int, generations: tuple[_Generation, ...]
) -> Iterator[Find]:
    """Yield the longest beginning of a value that ends there."""
    low = folded(text[start:end])
    for word in _WORD_STARTS.finditer(low, 0, len(low) - SHORTEST_CUT + 1):
        at = word.start()
        for generation in generations:
            is_plain = _is_plain_word(text[start + at : end])
            form = generation.beginning_with(low[at:], is_plain=is_plain)
            if form is not None:
                yield Find(start + at, end, form.kind)
                return


def _is_plain_word(text: str) -> bool:
    """Whether this may be any word, as in `loading...`."""
    return text.isalpha() and text.islower()


def _finds_in_piece(text: str, at: int, generation: _Generation, longest: int) -> Iterator[Find]:
    low = folded(text[at : at + PIECE + longest])
    for index, start, end in _whole_words(text, low, at, generation, longest):
        form = generation.forms[index]
        if start < at + PIECE and not (form.is_name and text[start:end].islower()):
            yield Find(start, end, form.kind)


def _whole_words(
    text: str, low: str, at: int, generation: _Generation, longest: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the matches that are words of their own.

    A match that is not one may hide another that begins at a word within it. It is looked for
    there again; each word is the beginning of one such search at most.
    """
    for index, start, end in generation.matches(low):
        while not _stands_alone(text, at + start, at + end):
            word = _WORD_STARTS.search(low, start + 1, end)
            if word is None:
                break
            again = generation.matches(low[word.start() : end + longest])
            if not again or word.start() + again[0][1] >= end:
                break
            index, start, end = again[0][0], word.start() + again[0][1], word.start() + again[0][2]
        else:
            yield index, at + start, at + end


def _stands_alone(text: str, start: int, end: int) -> bool:
    # A long name is one in `invoice_Zebulonia_2024.pdf`, too.
    part = (_LETTER if end - start >= LONG_NAME else _WORD).match
    is_inside = end < len(text) and part(text[end]) and part(text[end - 1])
    # The T between a date and its time is no part of a word. The time may not be there yet.
    if is_inside and not (text[end] == "T" and _DATE.fullmatch(text, start, end)):
        return False
    if start == 0 or not part(text[start]) or not part(text[start - 1]):
        return True
    # The second half of \n, or of %20.
    return text[max(0, start - 2) : start] in ("\\n", "\\r", "\\t") or (
        start > 2 and text[start - 3] == "%"
    )


def folded(text: str) -> str:
    """Return a text in small letters, as long as it was."""
    low = text.lower()
    if low.isascii():
        return low
    # The one letter whose small form is longer, and the one with two small forms. Half a character,
    # which UTF-8 can't write, would end the search for all that is sorted after it.
    low = text.replace("İ", "I").lower().replace("ς", "σ")
    return _HALF.sub("\ufffd", low)


def _says_something(low: str) -> bool:
    if low.isdecimal():
        return len(low) >= SHORTEST_NUMBER
    return len(low) >= SHORTEST and low not in COMMON and bool(_WORD.search(low))


def _forms(value: str, kind: str) -> Iterator[_Form]:
    low = folded(value)
    is_word = len(value) < SHORT_WORD or (kind == "NAME" and low in ORDINARY)
    is_name = value.isalpha() and is_word and not value.islower()
    for written in _written(value):
        form = folded(written)
        is_escaped = form != low and " ".join(low.split()) != form
        yield _Form(form, kind, is_name, value if is_escaped else "")


def _written(value: str) -> set[str]:
    """A value as it is, and as JSON, HTML, Python, CSV and addresses write it.

    Most need no form but one. What is escaped otherwise is found without its disguise.
    """
    ways = {value, " ".join(value.split())}
    if _DATE.fullmatch(value):  # as datetime.date(1984, 3, 2)
        ways.add(", ".join(str(int(part)) for part in value.split("-")))
    if value.isascii() and not _SPECIAL.search(value):
        return ways
    ways |= {
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        ascii(value)[1:-1],
        html.escape(value),
        value.replace('"', '""'),
        # Letters beyond ASCII are several bytes there.
        repr(value.encode("utf-8", "replace"))[2:-1],
        quote(value, errors="replace"),
        quote(value, safe="", errors="replace"),
        quote_plus(value, errors="replace"),
    }
    again = [way for way in ways if not _QUOTES.isdisjoint(way)]
    # In a text with both kinds of quotes Python escapes one of them.
    in_python = {repr(f'{way}"')[1:-2] for way in again}
    return ways | in_python | {json.dumps(way)[1:-1] for way in again}
