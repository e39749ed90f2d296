"""Skills found by words, with the index that finds tools.

Each skill is a section of the index by itself: one that is saved or removed costs what it is long,
however many others there are.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable

from divingbell.gateway.search.entry import IndexEntry
from divingbell.gateway.search.index import Index
from divingbell.gateway.search.section import Section
from divingbell.skills import names
from divingbell.skills.record import OFFERED, Summary
from divingbell.skills.store import Store, Stores
from divingbell.tool import Tool

MAX_LIMIT = 100
MOST_USERS = 64
"""Indexes that are kept at once; one of 1,000 skills takes 8 MB, and half a second to make."""
SECTION = "skills"

Wanted = Callable[[Summary], bool]


def is_offered(summary: Summary) -> bool:
    """Whether code may import a skill as it is now."""
    return summary.record.state in OFFERED


class SkillSearch:
    """The skills of one user, by words. It blocks; any thread may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._guard = threading.Lock()
        self._index = Index()
        self._generation = -1
        self._known: dict[str, Summary] = {}

    def find(self, query: str = "", limit: int = 10, wanted: Wanted = is_offered) -> list[Summary]:
        """Return the skills that fit a query best, the best first; without a word all, by name.

        Of those that are not `wanted` none is there.

        Raises:
            SkillRefused: the store can't be read.
        """
        with self._guard:
            self._take_changes()
            found = self._index.search(
                query,
                max(0, min(limit, MAX_LIMIT)),
                wanted=lambda tool: wanted(self._known[tool.name]),
            )
            return [self._known[tool.name] for tool in found]

    def _take_changes(self) -> None:
        generation = self._store.generation
        if generation == self._generation:
            return
        # Read after the number: what has changed in between is read again the next time.
        for summary in self._store.summaries(self._generation):
            known = self._known.get(summary.name)
            if known is None or known.description != summary.description:
                self._index.replace(Section(summary.name, [IndexEntry(_tool(summary))]))
            self._known[summary.name] = summary
        for name in self._known.keys() - set(self._store.names()):
            self._index.remove(name)
            del self._known[name]
        self._generation = generation


class Searches:
    """The searches of those users who have searched last."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._kept: OrderedDict[str, SkillSearch] = OrderedDict()

    def of(self, user: str) -> SkillSearch:
        """Return the search among a user's skills."""
        found = self._kept.pop(user, None) or SkillSearch(self._stores.of(user))
        self._kept[user] = found
        if len(self._kept) > MOST_USERS:
            self._kept.popitem(last=False)
        return found


def _tool(summary: Summary) -> Tool:
    return Tool(SECTION, summary.name, SECTION, names.module(summary.name), summary.description)
