"""Skills found by words, with the index that finds tools.

Each skill is a section of the index by itself: one that is saved or removed costs what it is long,
however many others there are. An index is made in small pieces, for whoever asks; others of the
same user who ask meanwhile wait on the event loop, and no thread waits for anybody.
"""

import asyncio
import contextlib
import heapq
import operator
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from divingbell.gateway.search.entry import IndexEntry
from divingbell.gateway.search.index import Index
from divingbell.gateway.search.section import Section
from divingbell.shares import weight
from divingbell.skills import names
from divingbell.skills.record import OFFERED, Summary
from divingbell.skills.store import Store, Stores
from divingbell.tool import Tool

MAX_LIMIT = 100
"""Skills that are shown at once; a search gives one more, so that it is known whether there is."""
PIECE = 25
"""Skills that are taken in at a time, in a few milliseconds."""
MAX_TEXT = 400
"""Characters of a description that are looked at."""
MAX_TERMS = 64
"""Terms of one skill, those of most weight; a user with very many skills has fewer of each."""
LEAST_TERMS = 10
OWN_SIZE = 10
"""What a skill takes by itself, in terms. Measured: a term takes about 400 bytes."""
MOST_OF_USER = 200_000
"""The size of a user's index when it is made, in terms. One that has grown by half is made anew,
with fewer terms of each skill."""
MOST_OF_ALL = 400_000
"""The size of all that are kept; the one that was searched last is, whatever its size."""
MOST_USERS = 64
"""Indexes that are kept at once."""
MOST_MADE = 4
"""Indexes of more than one piece that are made at once: those are held whatever is kept."""
SECTION = "skills"


class _Known(NamedTuple):
    text: str
    is_offered: bool
    size: int


class SkillSearch:
    """The skills of one user, by words.

    `grown` is called when the index has become larger; `places` are for those who make a long one.
    """

    def __init__(
        self,
        store: Store,
        grown: Callable[[], object] = lambda: None,
        places: asyncio.Semaphore | None = None,
    ) -> None:
        self._store = store
        self._grown = grown
        self._places = places or asyncio.Semaphore(MOST_MADE)
        self._turn = asyncio.Lock()
        self._index = Index()
        self._generation = -1
        self._known: dict[str, _Known] = {}
        self.size = 0
        """In terms; each skill has some for itself."""

    def __len__(self) -> int:
        """The number of skills that were there at the last search."""
        return len(self._known)

    async def find(self, query: str = "", limit: int = 10, *, all_: bool = False) -> list[Summary]:
        """Return the skills that fit a query best, the best first; without a word all, by name.

        Those that are not offered as they are now are there only where `all_` are asked for.

        Raises:
            SkillRefused: the store can't be read.
        """
        most = max(0, min(limit, MAX_LIMIT + 1))
        async with self._turn:
            await self._take_changes()
            found = await weight.in_thread(
                lambda: self._index.search(
                    query, most, wanted=lambda tool: all_ or self._known[tool.name].is_offered
                )
            )
        return await asyncio.to_thread(self._store.summaries_of, [tool.name for tool in found])

    async def _take_changes(self) -> None:
        generation = await asyncio.to_thread(lambda: self._store.generation)
        if generation == self._generation:
            return
        if self.size > MOST_OF_USER * 3 // 2:
            self._index, self._known, self.size, self._generation = Index(), {}, 0, -1
        # Read after the number: what has changed in between is read again the next time.
        there = await asyncio.to_thread(self._store.names)
        await self._forget([*self._known.keys() - set(there)])
        most = max(LEAST_TERMS, min(MAX_TERMS, MOST_OF_USER // max(1, len(there)) - OWN_SIZE))
        piece = await self._changed_after("")
        async with self._places if len(piece) == PIECE else contextlib.nullcontext():
            while piece:
                await self._take(piece, most)
                piece = await self._changed_after(piece[-1].name)
        self._generation = generation

    async def _changed_after(self, name: str) -> list[Summary]:
        return await asyncio.to_thread(self._store.summaries, self._generation, name, PIECE)

    async def _take(self, piece: Sequence[Summary], most: int) -> None:
        # Made in a thread and taken in here: a thread whose caller was cancelled changes nothing.
        made = await weight.in_thread(lambda: [self._made(summary, most) for summary in piece])
        for summary, section in zip(piece, made, strict=True):
            known, is_offered = self._known.get(summary.name), summary.record.state in OFFERED
            if section is not None:
                self._drop(summary.name)
                self._index.replace(section)
                known = _Known(_text(summary), False, OWN_SIZE + len(section.postings))
                self.size += known.size
            if known is not None:
                self._known[summary.name] = known._replace(is_offered=is_offered)
        self._grown()

    def _made(self, summary: Summary, most: int) -> Section | None:
        """Return the section of a skill; None where what is known of it still holds."""
        known = self._known.get(summary.name)
        if known is not None and known.text == _text(summary):
            return None
        entry = IndexEntry(_tool(summary))
        if len(entry.terms) > most:
            entry.terms = dict(
                heapq.nlargest(most, entry.terms.items(), key=operator.itemgetter(1))
            )
        section = Section(summary.name, [entry])
        entry.terms = {}  # the section has them
        return section

    async def _forget(self, gone: Sequence[str]) -> None:
        for start in range(0, len(gone), PIECE):
            for name in gone[start : start + PIECE]:
                self._drop(name)
            await asyncio.sleep(0)

    def _drop(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            self._index.remove(name)
            self.size -= known.size


class Searches:
    """The searches of those users who have searched last; together they have a largest size."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._kept: OrderedDict[str, SkillSearch] = OrderedDict()
        self._places = asyncio.Semaphore(MOST_MADE)

    def of(self, user: str) -> SkillSearch:
        """Return the search among a user's skills."""
        found = self._kept.pop(user, None)
        if found is None:
            found = SkillSearch(self._stores.of(user), self._let_go, self._places)
        self._kept[user] = found
        self._let_go()
        return found

    @property
    def size(self) -> int:
        """The size of all that are kept, in terms."""
        return sum(each.size for each in self._kept.values())

    def _let_go(self) -> None:
        while len(self._kept) > 1 and (len(self._kept) > MOST_USERS or self.size > MOST_OF_ALL):
            self._kept.popitem(last=False)


def _text(summary: Summary) -> str:
    return summary.description[:MAX_TEXT]


def _tool(summary: Summary) -> Tool:
    return Tool(SECTION, summary.name, SECTION, names.module(summary.name), _text(summary))
