"""The index of tools: it finds the right one among thousands from a few words, in a millisecond.

An inverted index of our own in plain Python rather than SQLite's FTS5: the ranking needs what
FTS5 has no place for (names split at camelCase, synonyms that count less than the word itself,
how much of a tool's name the query covers), nothing of a query is ever parsed as syntax, and a
server's tools come and go without anything else being touched.

What a tool says of itself is text of others. It is capped before it is read, and it can do no
more than rank its tool: a description stuffed with words gains little (BM25 saturates).
"""

import heapq
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from divingbell.gateway.search.entry import IndexEntry
from divingbell.gateway.search.section import Postings, Section
from divingbell.gateway.search.stemming import intent, proper_names, slips, stem, stems
from divingbell.gateway.search.synonyms import synonyms
from divingbell.gateway.search.weights import BY_MEANING, BY_WORDS, Weights
from divingbell.tool import Tool

if TYPE_CHECKING:
    from divingbell.gateway.search.embeddings import Embeddings

MAX_QUERY = 1000
MAX_QUERY_WORDS = 32
OR = "|"
"""Stands between the phrasings of one query."""
MAX_PHRASINGS = 4
OVERSAMPLE = 4
"""Factor by which more tools are looked at where too few are for this user."""

# Shares of the very word's points, for what counts less: two words that stand together, a guess.
_JOINED = 0.4
_GUESSED = 0.6
_NEGLIGIBLE = 0.25
_FEW = 4
_MOST = 0.9
_CONSIDERED = 200
"""Tools, the best by their words, that are looked at more closely."""

Wanted = Callable[[Tool], bool]


class Index:
    """The tools that can be found. Not for several threads at once.

    With `embeddings` what a query means counts as well, once most of the tools are prepared.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        embeddings: "Embeddings | None" = None,
        by_words: Weights = BY_WORDS,
        by_meaning: Weights = BY_MEANING,
    ) -> None:
        self.embeddings = embeddings
        self._by_words, self._by_meaning = by_words, by_meaning
        self._tools: dict[int, IndexEntry] = {}
        self._sections: dict[str, Section] = {}
        self._postings: dict[str, dict[str, Postings]] = {}
        """The servers that have a term, with their postings, by the term."""
        by_server: dict[str, list[IndexEntry]] = {}
        for tool in tools:
            by_server.setdefault(tool.server, []).append(IndexEntry(tool))
        for server, entries in by_server.items():
            self.replace(Section(server, entries))

    def __len__(self) -> int:
        return len(self._tools)

    def replace(self, section: Section) -> None:
        """Have these tools of a server, and no others of it.

        Takes as many steps as the section has terms and tools, however many tools have a term.
        """
        self.remove(section.server)
        self._sections[section.server] = section
        self._tools |= section.entries
        for term, postings in section.postings.items():
            self._postings.setdefault(term, {})[section.server] = postings

    def remove(self, server: str) -> None:
        """Forget a server's tools. One that isn't known is no error."""
        section = self._sections.pop(server, None)
        if section is None:
            return
        for number in section.entries:
            del self._tools[number]
        for term in section.postings:
            found = self._postings[term]
            del found[server]
            if not found:
                del self._postings[term]

    def search(
        self,
        query: str,
        limit: int,
        server: str | None = None,
        wanted: Wanted = lambda _: True,
        near: Mapping[bytes, float] | None = None,
    ) -> list[Tool]:
        """Return the tools that fit a query best, the best first; the same ones each time.

        Of those that are not `wanted` none is there, nor takes the place of another. `near` is
        what `nearness` gives, for those who ask for it beside the event loop.

        A query without a word that says anything lists tools by name. Any text is a query, and
        `a | b` is one in two phrasings.
        """
        scores = self._scores(query, near)
        if server is not None:
            section = self._sections.get(server)
            own = section.entries if section is not None else ()
            scores = {number: scores[number] for number in own if number in scores}
            if not scores:
                scores = dict.fromkeys(own, 0.0)
        return list(itertools.islice(self._ranked(scores, limit, wanted), max(limit, 0)))

    def best_servers(
        self,
        query: str,
        most: int,
        wanted: Wanted = lambda _: True,
        near: Mapping[bytes, float] | None = None,
    ) -> list[str]:
        """Return the servers that fit a query best. Each is as good as its best tool.

        Measured: neither the mean of its best tools nor what its tools have in common is better.
        A query without a word that says anything lists servers by name.
        """
        scores = self._scores(query, near, for_servers=True)
        ranked = self._ranked(scores, 2 * OVERSAMPLE * most, wanted)
        found: dict[str, None] = {}
        for tool in ranked:
            found[tool.server] = None
            if len(found) == most:
                break
        return list(found)

    def nearness(self, query: str) -> Mapping[bytes, float]:
        """Return how near tools are to what a query means. Any thread may.

        Measured: it takes 15 ms.
        """
        if self.embeddings is None:
            return {}
        return self.embeddings.nearness(phrasings(query))

    def _ranked(self, scores: Mapping[int, float], most: int, wanted: Wanted) -> Iterator[Tool]:
        """Yield the tools that are wanted, the best first; about `most` of them will be needed."""
        seen = 0
        while scores and most > 0 and seen < len(scores):
            best = self._best(scores, most)
            yield from filter(wanted, best[seen:])
            seen = len(best)
            most *= OVERSAMPLE

    def _best(self, scores: Mapping[int, float], most: int) -> list[Tool]:
        # Names settle what is equal, so only those that can be among the best need theirs.
        least = heapq.nlargest(most, scores.values())[-1]
        best = sorted(
            (number for number, score in scores.items() if score >= least),
            key=lambda number: (-scores[number], self._tools[number].tool.full_name),
        )[:most]
        return [self._tools[number].tool for number in best]

    def _scores(
        self, query: str, near: Mapping[bytes, float] | None, for_servers: bool = False
    ) -> dict[int, float]:
        nearness = self._nearness_of_all(self.nearness(query) if near is None else near)
        weights = self._by_meaning if nearness else self._by_words
        asked = phrasings(query)
        scores: dict[int, float] = {}
        suits: dict[str, float] = {}
        for phrasing in asked:
            terms = self._asked(phrasing)[: MAX_QUERY_WORDS // len(asked)]
            for number, points in self._points(terms, weights).items():
                scores[number] = scores.get(number, 0.0) + points / len(asked)
            if wants := _wants(phrasing, terms):
                suits[wants] = suits.get(wants, 0.0) + weights.suits / len(asked)
        for number in nearness or scores:
            points = scores.get(number, 0.0) + suits.get(self._tools[number].does, 0.0)
            if for_servers:
                points *= weights.server_words
            scores[number] = points + nearness.get(number, 0.0) * weights.nearness
        if not scores and not stems(query[:MAX_QUERY]):
            return dict.fromkeys(self._tools, 0.0)
        return scores

    def _nearness_of_all(self, near: Mapping[bytes, float]) -> dict[int, float]:
        """Return how near each tool is, if that is known of most: among a few none would compare.

        Where it isn't known, a tool is as near as most are, which neither helps nor hides it.
        """
        if len(near) < _MOST * len(self._tools):
            return {}
        found = {
            number: near[entry.key] for number, entry in self._tools.items() if entry.key in near
        }
        if len(found) < _MOST * len(self._tools):
            return {}
        if found and len(found) < len(self._tools):
            usual = statistics.median_low(found.values())
            return dict.fromkeys(self._tools, usual) | found
        return found

    def _points(self, asked: Sequence[str], weights: Weights) -> dict[int, float]:
        """Return the points that tools have for their words.

        Words that nearly all have count only where there are no others: of a small server every
        tool may be about orders.
        """
        return self._counted(asked, weights, _NEGLIGIBLE) or self._counted(asked, weights, 0.0)

    def _counted(self, asked: Sequence[str], weights: Weights, least: float) -> dict[int, float]:
        scores: dict[int, float] = {}
        seen: dict[str, float] = {}
        for alternatives in self._expanded(asked, weights.synonym):
            # The best of a word and its synonyms counts, not all of them: else a tool that says
            # "get, fetch, retrieve" would win against the one that has the words asked for.
            best: dict[int, float] = {}
            # Nor is a rare synonym of a common word worth more than the word.
            ceiling = self._rarity(next(iter(alternatives)))
            for term, share in alternatives.items():
                seen[term] = max(seen.get(term, 0.0), share)
                value = share * min(ceiling, self._rarity(term))
                if value < least or (value < _NEGLIGIBLE and self._holders(term) > _CONSIDERED):
                    continue  # it says little, and where many have it it takes long
                for postings in self._postings[term].values():
                    for number, weight in postings.items():
                        gained = value * weight
                        if gained > best.get(number, 0.0):
                            best[number] = gained
            for number, gained in best.items():
                scores[number] = scores.get(number, 0.0) + gained
        for number in heapq.nlargest(_CONSIDERED, scores, key=scores.__getitem__):
            scores[number] += _bonus(self._tools[number], seen, weights)
        return scores

    def _asked(self, phrasing: str) -> list[str]:
        known = [name for name in proper_names(phrasing) if name in self._postings]
        return stems(phrasing) + known

    def _expanded(self, asked: Sequence[str], synonym: float) -> Iterator[dict[str, float]]:
        """Yield for each word of a query the terms that stand for it, and how well each does."""
        counted = dict.fromkeys(asked)
        for word in counted:
            terms = {word: 1.0}
            for other in synonyms().get(word, ()):
                terms.setdefault(other, synonym)
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
            for other in synonyms().get(pair, ()):
                if other in self._postings:
                    known[other] = max(synonym, known.get(other, 0.0))
            if known:
                yield known

    def _guesses(self, word: str) -> dict[str, float]:
        """Guess at a word that no tool has: two words in one, or a word with a slip in it."""
        for cut in range(3, len(word) - 2):
            first, second = stem(word[:cut]), stem(word[cut:])
            if first in self._postings and second in self._postings:
                return {first: _GUESSED, second: _GUESSED}
        if len(word) < 5 or len(word) > 30:
            return {}
        near = {slip for slip in slips(word) if slip in self._postings}
        return dict.fromkeys(near, _GUESSED)

    def _holders(self, term: str) -> int:
        return sum(map(len, self._postings[term].values()))

    def _rarity(self, term: str) -> float:
        holders = self._holders(term)
        total = len(self._tools)
        return math.log(1.0 + (total - holders + 0.5) / (holders + 0.5))


def phrasings(query: str) -> list[str]:
    """Return the phrasings of a query: `a | b` says one thing in two ways."""
    found = [part.strip() for part in query[:MAX_QUERY].split(OR)]
    return [part for part in found if part][:MAX_PHRASINGS]


def _wants(phrasing: str, asked: Sequence[str]) -> str:
    """Say whether a phrasing asks to know or to do.

    A few words without a verb ("slack channels") ask to see something.
    """
    return intent(phrasing) or ("reads" if len(asked) <= _FEW else "")


def _bonus(entry: IndexEntry, seen: Mapping[str, float], weights: Weights) -> float:
    """Points for the tool as a whole."""
    bonus = 0.0
    if entry.name:
        covered = sum(seen.get(term, 0.0) for term in entry.name)
        bonus += weights.covers_name * covered / len(entry.name)
    if entry.server and any(seen.get(term) == 1.0 for term in entry.server):
        bonus += weights.names_server
    return bonus
