"""A conversation behind a border: its tokens, and what was learned in it."""

import threading
from collections import deque
from collections.abc import Iterator

from divingbell.border.privacy import views
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.find import Find
from divingbell.border.privacy.kinds import SECRETS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.learner import Learner
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.token_screen import LOOK_ALIKE, TokenScreen
from divingbell.border.vault import tokens
from divingbell.border.vault.vault import Entry, Vault

BETWEEN = "\n"
"""Between two texts of a value, which are looked through as one: the name of a field says what
stands in it, and one long text takes a tenth of the time that many short ones do."""
AS_WRITTEN = SECRETS | {"NAME", "ADDRESS"}
"""Kinds whose values may have in them what elsewhere hides one: a password with `%40` in it."""


class Conversation:
    """The tokens of one conversation, and the values that were learned in it. Any thread may ask.

    `kinds` are those that are replaced here. Of others a token may be known from before.
    """

    def __init__(
        self, vault: Vault, scanner: Scanner, fields: Fields, kinds: frozenset[str]
    ) -> None:
        self.vault = vault
        learned = Learned()
        self.learner = Learner(fields, learned)
        self.screen = TokenScreen(scanner, learned, kinds)
        self._kinds = kinds
        self._joined: list[Conversation] = []
        self._guard = threading.Lock()
        self._first_shown = ""
        self._is_told = False

    def join(self, other: "Conversation") -> None:
        """Know the tokens of another conversation of the same user, whose session it reaches."""
        with self._guard:
            if other is not self and other not in self._joined:
                self._joined.append(other)

    def entry_of(self, token: str) -> Entry | None:
        """Return what a token stands for, if it is one that was given out here."""
        for each in (self, *self._joined):
            if (found := each.vault.entry_of(token)) is not None:
                return found
        return None

    def example(self) -> str:
        """Return a token where its reader has to be told now what that is: once."""
        with self._guard:
            if self._is_told or not self._first_shown:
                return ""
            self._is_told = True
            return self._first_shown

    def tokenised(self, text: str, origin: str = "", *, sealed: bool = False) -> str:
        """Return a text with tokens in the places of values, for those who may not see them.

        What looks like a token and is none names nothing any more. `origin` is the server that it
        comes from. What is sealed is not put back into code either.
        """
        return self.tokenised_all([text], origin, sealed=sealed)[0]

    def tokenised_all(
        self, texts: list[str], origin: str = "", *, sealed: bool = False
    ) -> list[str]:
        """Do the same with the texts of one value, which may explain one another."""
        whole = BETWEEN.join(texts)
        found = self.screen.finds(whole)
        if not found:
            return texts
        return [
            self._edited(text, own, origin, sealed) if own else text
            for text, own in zip(texts, _by_text(found, texts), strict=True)
        ]

    def defused_all(self, texts: list[str]) -> list[str]:
        """Return the same texts, without what looks like a token and is none."""
        if not any("[" in text for text in texts):
            return texts
        return [tokens.replaced(text, self._known_or_defused) for text in texts]

    def note_origins(self, secrets: Scanner, texts: list[str], server: str) -> None:
        """Remember of which server the secrets in these texts are: they go back there only."""
        whole = BETWEEN.join(texts)
        for find in secrets.finds(whole):
            self.vault.token_of(whole[find.start : find.end], find.kind, server)

    def pieces(self) -> PieceScreen:
        """Return what does the same with a text that comes in pieces."""
        return PieceScreen(self.screen, lambda piece, kind: self._shown(piece, kind, "", False))

    def _known_or_defused(self, token: str) -> str:
        is_ours = tokens.kind_of(token) not in self._kinds or self.entry_of(token) is not None
        return token if is_ours else tokens.defused(token)

    def _edited(self, text: str, finds: list[Find], origin: str, sealed: bool) -> str:
        parts: list[str] = []
        at = 0
        for find in finds:
            piece = text[find.start : find.end]
            parts += text[at : find.start], self._shown(piece, find.kind, origin, sealed)
            at = find.end
        return "".join((*parts, text[at:]))

    def _shown(self, piece: str, kind: str, origin: str, sealed: bool) -> str:
        if kind == LOOK_ALIKE:
            return self._known_or_defused(piece)
        value = piece if kind in AS_WRITTEN else views.undisguised(piece)
        token = self.vault.token_of(value, kind, origin, sealed=sealed)
        self._first_shown = self._first_shown or token
        return token


def _by_text(finds: list[Find], texts: list[str]) -> Iterator[list[Find]]:
    """Yield for each of the texts, which were joined, its finds by their places in it.

    One that lies across two of them is cut.
    """
    left, start = deque(finds), 0
    for text in texts:
        own: list[Find] = []
        end = start + len(text)
        while left and left[0].start < end:
            find = left.popleft()
            if find.end > end:
                left.appendleft(find._replace(start=end))
            first, last = max(find.start, start), min(find.end, end)
            if first < last:
                own.append(Find(first - start, last - start, find.kind))
        yield own
        start = end + len(BETWEEN)
