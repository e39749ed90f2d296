"""A section of the index: the tools of one server, numbered, and by the terms they have."""

import itertools
from collections.abc import Iterable

from divingbell.gateway.search.entry import IndexEntry

MAX_TERMS = 10_000
"""Different terms of one server. Measured: each costs the event loop half a microsecond when the
server's list is taken in; of the real servers that we have seen none has four thousand."""

Postings = dict[int, float]
"""The numbers of the tools that have a term, and its weight in each."""

_NUMBERS = itertools.count()


class Section:
    """The part of the index that is one server's. It takes long to make: any thread may."""

    __slots__ = ("entries", "postings", "server")

    def __init__(self, server: str, entries: Iterable[IndexEntry]) -> None:
        self.server = server
        self.entries = {next(_NUMBERS): entry for entry in entries}
        self.postings: dict[str, Postings] = {}
        # Where a server has too many terms, its tools are at least found by their names.
        for number, entry in self.entries.items():
            self._add(
                number, {term: entry.terms[term] for term in entry.name if term in entry.terms}
            )
        for number, entry in self.entries.items():
            self._add(number, entry.terms)

    def _add(self, number: int, terms: dict[str, float]) -> None:
        for term, weight in terms.items():
            if (known := self.postings.get(term)) is not None:
                known[number] = weight
            elif len(self.postings) < MAX_TERMS:
                self.postings[term] = {number: weight}
