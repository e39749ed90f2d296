"""Finding the right tool among thousands from a few words, in about a millisecond.

An inverted index of our own in plain Python rather than SQLite's FTS5: the ranking needs what
FTS5 has no place for (names split at camelCase, synonyms that count less than the word itself,
how much of a tool's name the query covers), nothing of a query is ever parsed as syntax, and a
server's tools come and go without anything else being touched.

What a tool says of itself is text of others. It is capped before it is read, and it can do no
more than rank its tool: a description stuffed with words gains little (BM25 saturates).
"""

import functools
import heapq
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from divingbell.gateway import thesaurus
from divingbell.gateway.tool import Tool
from divingbell.gateway.words import intent, proper_names, slips, split_name, stem, words

if TYPE_CHECKING:
    from divingbell.gateway.meaning import Meaning

MAX_QUERY = 1000
MAX_QUERY_WORDS = 48
MAX_NAME = 200
MAX_DESCRIPTION = 4000
MAX_PARAMETERS = 100
MAX_PARAMETER_TEXT = 300
MAX_VALUES = 20
OVERSAMPLE = 4
"""So many times as many are looked at where too few are for this user."""

# How much a word counts for where it stands, and how long that place usually is.
_FIELDS = {
    "name": (5.0, 4.0),
    "server": (1.5, 1.5),
    "title": (1.5, 4.0),
    "lead": (2.0, 12.0),
    "rest": (1.0, 60.0),
    "parameters": (0.5, 10.0),
    "details": (0.15, 80.0),
}
_LENGTH_MATTERS = 0.4
_SATURATION = 0.8
# What counts less than the very word: a synonym, two words that stand together, a guess.
_SYNONYM = 0.6
_JOINED = 0.4
_GUESSED = 0.6
# What is added for the tool as a whole.
_COVERS_NAME = 5.0
_NAMES_SERVER = 3.0
_SUITS = 1.2
_WORDS_TO_NEARNESS = 0.003
"""How near a tool must be for what one point for its words makes up."""
_NEGLIGIBLE = 0.25
_FEW = 4
_CONSIDERED = 200
"""So many of the best by their words are looked at more closely."""

_SENTENCE = re.compile(r"[.!?:;]\s|\n\s*\n|\n\s*[-*#•]")


class Index:
    """The tools that can be found. Not for several threads at once.

    With a `Meaning` what a query means counts as well, for the tools that it has prepared.
    """

    def __init__(self, tools: Iterable[Tool] = (), meaning: "Meaning | None" = None) -> None:
        self.meaning = meaning
        self._tools: dict[int, IndexEntry] = {}
        self._servers: dict[str, list[int]] = {}
        self._postings: dict[str, dict[int, float]] = {}
        self._next = 0
        for tool in tools:
            self._add(IndexEntry(tool))

    def __len__(self) -> int:
        return len(self._tools)

    def replace(self, server: str, entries: "Iterable[IndexEntry]") -> None:
        """Have these tools of a server, and no others of it."""
        self.remove(server)
        for entry in entries:
            self._add(entry)

    def remove(self, server: str) -> None:
        """Forget a server's tools. One that isn't known is no error."""
        for number in self._servers.pop(server, []):
            for term in self._tools.pop(number).terms:
                found = self._postings[term]
                del found[number]
                if not found:
                    del self._postings[term]

    def search(
        self,
        query: str,
        limit: int,
        server: str | None = None,
        wanted: Callable[[Tool], bool] = lambda _: True,
        near: Mapping[bytes, float] | None = None,
    ) -> list[Tool]:
        """Return the tools that fit a query best, the best first; the same ones each time.

        Of those that are not `wanted` none is there, nor takes the place of another. `near` is
        what `nearness` gives, for those who ask for it beside the event loop.

        A query without a word that says anything lists tools by name. Any text is a query.
        """
        query = query[:MAX_QUERY]
        scores = self._scores(query)
        self._add_nearness(scores, self.nearness(query) if near is None else near)
        if server is not None:
            own = self._servers.get(server, ())
            scores = {number: scores[number] for number in own if number in scores}
            if not scores:
                scores = dict.fromkeys(own, 0.0)
        elif not scores and not words(query):
            scores = dict.fromkeys(self._tools, 0.0)
        if limit < 1 or not scores:
            return []
        most = limit
        while True:
            found = [tool for tool in self._best(scores, most) if wanted(tool)]
            if len(found) >= limit or most >= len(scores):
                return found[:limit]
            most *= OVERSAMPLE

    def nearness(self, query: str) -> Mapping[bytes, float]:
        """How near tools are to what a query means; it may run in a thread, and takes 15 ms."""
        return {} if self.meaning is None else self.meaning.nearness(query[:MAX_QUERY])

    def _best(self, scores: Mapping[int, float], most: int) -> list[Tool]:
        # Names settle what is equal, so only those that can be among the best need theirs.
        least = heapq.nlargest(most, scores.values())[-1]
        best = sorted(
            (number for number, score in scores.items() if score >= least),
            key=lambda number: (-scores[number], self._tools[number].tool.full_name),
        )[:most]
        return [self._tools[number].tool for number in best]

    def _add(self, entry: "IndexEntry") -> None:
        number = self._next
        self._next += 1
        self._tools[number] = entry
        self._servers.setdefault(entry.tool.server, []).append(number)
        for term, weight in entry.terms.items():
            self._postings.setdefault(term, {})[number] = weight

    def _scores(self, query: str) -> dict[int, float]:
        asked = self._asked(query)
        scores: dict[int, float] = {}
        seen: dict[str, float] = {}
        for alternatives in self._expanded(asked):
            # The best of a word and its synonyms counts, not all of them: else a tool that says
            # "get, fetch, retrieve" would win against the one that has the words asked for.
            best: dict[int, float] = {}
            # Nor is a rare synonym of a common word worth more than the word.
            ceiling = self._rarity(len(self._postings[next(iter(alternatives))]))
            for term, share in alternatives.items():
                seen[term] = max(seen.get(term, 0.0), share)
                postings = self._postings[term]
                value = share * min(ceiling, self._rarity(len(postings)))
                if value < _NEGLIGIBLE:
                    continue
                for number, weight in postings.items():
                    gained = value * weight
                    if gained > best.get(number, 0.0):
                        best[number] = gained
            for number, gained in best.items():
                scores[number] = scores.get(number, 0.0) + gained
        # A few words without a verb ("slack channels") ask to see something.
        wants = intent(query) or ("reads" if len(asked) <= _FEW else "")
        for number in heapq.nlargest(_CONSIDERED, scores, key=scores.__getitem__):
            scores[number] += self._bonus(self._tools[number], seen, wants)
        return scores

    def _add_nearness(self, scores: dict[int, float], near: Mapping[bytes, float]) -> None:
        for number, entry in self._tools.items() if near else ():
            found = near.get(entry.key)
            if found is not None:
                scores[number] = scores.get(number, 0.0) + found / _WORDS_TO_NEARNESS

    def _asked(self, query: str) -> list[str]:
        known = [name for name in proper_names(query) if name in self._postings]
        return (words(query) + known)[:MAX_QUERY_WORDS]

    def _expanded(self, asked: Sequence[str]) -> Iterator[dict[str, float]]:
        """For each word of a query: the terms of the index that stand for it, and how well."""
        counted = dict.fromkeys(asked)
        for word in counted:
            terms = {word: 1.0}
            for synonym in _synonyms().get(word, ()):
                terms.setdefault(synonym, _SYNONYM)
            if word not in self._postings:
                terms |= self._guesses(word)
            known = {term: share for term, share in terms.items() if term in self._postings}
            if known:
                yield known
        for first, second in itertools.pairwise(asked):
            joined = first + second
            pair = f"{first} {second}"
            known = {}
            if joined in self._postings:
                known[joined] = _JOINED
            if pair in self._postings:
                known[pair] = _JOINED
            for synonym in _synonyms().get(pair, ()):
                if synonym in self._postings:
                    known[synonym] = max(_SYNONYM, known.get(synonym, 0.0))
            if known:
                yield known

    def _guesses(self, word: str) -> dict[str, float]:
        """What a word that no tool has may be: two words in one, or a word with a slip in it."""
        for cut in range(3, len(word) - 2):
            first, second = stem(word[:cut]), stem(word[cut:])
            if first in self._postings and second in self._postings:
                return {first: _GUESSED, second: _GUESSED}
        if len(word) < 5 or len(word) > 30:
            return {}
        near = {slip for slip in slips(word) if slip in self._postings}
        return dict.fromkeys(near, _GUESSED)

    def _rarity(self, holders: int) -> float:
        total = len(self._tools)
        return math.log(1.0 + (total - holders + 0.5) / (holders + 0.5))

    def _bonus(self, entry: "IndexEntry", seen: Mapping[str, float], wants: str) -> float:
        bonus = 0.0
        name = entry.name
        if name:
            covered = sum(seen.get(term, 0.0) for term in name)
            bonus += _COVERS_NAME * covered / len(name)
        if entry.server and any(seen.get(term) == 1.0 for term in entry.server):
            bonus += _NAMES_SERVER
        if wants and wants == entry.does:
            bonus += _SUITS
        return bonus


class IndexEntry:
    """A tool with what the index has read of it, which takes most of the time."""

    __slots__ = ("_key", "does", "name", "server", "terms", "tool")

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self._key = b""
        server = words(tool.server[:MAX_NAME])
        # `linear_createIssue` of linear: its server says nothing new about it.
        name = words(tool.name[:MAX_NAME])
        self.server = frozenset(server)
        self.name = tuple(dict.fromkeys(word for word in name if word not in self.server)) or tuple(
            name
        )
        self.does = _does(tool)
        self.terms = _weighted(_texts(tool, name, server))

    @property
    def key(self) -> bytes:
        """What its point is known by; made when it is first asked for."""
        if not self._key:
            from divingbell.gateway import meaning

            self._key = meaning.key(self.tool)
        return self._key


def _texts(tool: Tool, name: list[str], server: list[str]) -> Iterator[tuple[str, list[str]]]:
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(name)]
    joined = [first + second for first, second in itertools.pairwise(name)]
    yield "name", name + pairs + joined
    yield "server", server
    title = (tool.annotations or {}).get("title")
    if isinstance(title, str):
        yield "title", words(title[:MAX_NAME])
    description = tool.description[:MAX_DESCRIPTION].strip()
    end = _SENTENCE.search(description, 20)
    cut = end.start() if end else len(description)
    lead = words(description[:cut])
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(lead)]
    yield "lead", lead + pairs + proper_names(description[:cut])
    yield "rest", words(description[cut:]) + proper_names(description[cut:])
    names: list[str] = []
    details: list[str] = []
    for parameter, about in _parameters(tool.input_schema):
        names += words(parameter[:MAX_NAME])
        text = about.get("description")
        if isinstance(text, str):
            details += words(text[:MAX_PARAMETER_TEXT])
        values = about.get("enum")
        if isinstance(values, list):
            for value in values[:MAX_VALUES]:
                if isinstance(value, str):
                    details += words(value[:MAX_NAME])
    yield "parameters", names
    yield "details", details


def _parameters(schema: Mapping[str, Any] | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = (schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return
    for number, (name, about) in enumerate(properties.items()):
        if number >= MAX_PARAMETERS:
            return
        yield str(name), about if isinstance(about, Mapping) else {}


def _weighted(texts: Iterable[tuple[str, list[str]]]) -> dict[str, float]:
    """Each term's weight in a tool: BM25 over fields, with lengths against fixed usual ones.

    Fixed, so that a server that comes or goes changes nothing about the tools of others.
    """
    sums: dict[str, float] = {}
    for field, terms in texts:
        weight, usual = _FIELDS[field]
        norm = weight / (1 - _LENGTH_MATTERS + _LENGTH_MATTERS * len(terms) / usual)
        for term, count in Counter(terms).items():
            sums[term] = sums.get(term, 0.0) + norm * count
    return {term: (1 + _SATURATION) * value / (_SATURATION + value) for term, value in sums.items()}


@functools.cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in thesaurus.groups():
        stems = [" ".join(words(term.replace("-", " "))) for term in group]
        for word in stems:
            found.setdefault(word, {}).update(dict.fromkeys(stems))
    return {
        word: tuple(other for other in others if other and other != word)
        for word, others in found.items()
        if word
    }


def _does(tool: Tool) -> str:
    """Say whether a tool reads or writes, by its hints or the verb in its name."""
    hint = (tool.annotations or {}).get("readOnlyHint")
    if isinstance(hint, bool):
        return "reads" if hint else "writes"
    return intent(split_name(tool.name[:MAX_NAME]))
