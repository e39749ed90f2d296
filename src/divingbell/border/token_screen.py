"""The screen that knows tokens: what looks like one is found as well, and no value within one."""

import re
from collections.abc import Generator, Iterable, Iterator

from divingbell.border.privacy.find import Find
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen, Settled
from divingbell.border.vault import tokens

LOOK_ALIKE = ""
"""The kind of what looks like a token, and may be one."""
_BEGUN = re.compile(r"\[[A-Z0-9_]*\Z")


class TokenScreen(Screen):
    """Finds values, and what looks like a token of one of these kinds."""

    def __init__(self, scanner: Scanner, learned: Learned, kinds: frozenset[str]) -> None:
        super().__init__(scanner, learned)
        self._kinds = kinds

    def finds(self, text: str) -> list[Find]:
        return self.with_tokens(text, self.values(text))

    def values(self, text: str) -> list[Find]:
        """Return the finds of values alone."""
        return super().finds(text)

    def with_tokens(self, text: str, found: list[Find]) -> list[Find]:
        """Return finds of values together with the tokens of a text; those within one are none."""
        there = list(self._tokens_in(text))
        return _in_order(_outside(found, there), there) if there else found

    def settling(self, text: str, since: int = 0) -> Generator[None, None, Settled]:
        found, end = yield from super().settling(text, since)
        found = self.with_tokens(text, found)
        if begun := _BEGUN.search(text, max(since, len(text) - tokens.LONGEST)):
            end = min(end, begun.start())
        while found and found[-1].end > end:
            end = min(end, found.pop().start)
        return Settled(found, end)

    def _tokens_in(self, text: str) -> Iterator[Find]:
        if "[" in text:
            for found in tokens.TOKEN.finditer(text):
                if found[1] in self._kinds:
                    yield Find(*found.span(), LOOK_ALIKE)


def _outside(finds: Iterable[Find], tokens_there: list[Find]) -> Iterator[Find]:
    """Those finds that are no part of a token; both are sorted."""
    left = iter(tokens_there)
    token = next(left, None)
    for find in finds:
        while token is not None and token.end <= find.start:
            token = next(left, None)
        if token is None or find.start < token.start or find.end > token.end:
            yield find


def _in_order(finds: Iterable[Find], tokens_there: list[Find]) -> list[Find]:
    """All in their order; what a find covers, even in part, goes with it."""
    chosen: list[Find] = []
    for find in sorted([*finds, *tokens_there], key=lambda each: (each.start, -each.end)):
        if not chosen or find.start >= chosen[-1].end:
            chosen.append(find)
        elif find.end > chosen[-1].end:
            kind = chosen[-1].kind or find.kind
            chosen[-1] = Find(chosen[-1].start, find.end, kind)
    return chosen
