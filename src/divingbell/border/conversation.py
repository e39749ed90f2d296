"""A conversation behind a border: its tokens, and what was learned in it."""

import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator

from divingbell.border.privacy import cuts, views
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.find import Find, merged
from divingbell.border.privacy.kinds import SECRETS
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.learner import Learner
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen
from divingbell.border.vault import tokens
from divingbell.border.vault.vault import Entry, Vault

BETWEEN = "\n"
"""Between two texts of a value, which are looked through as one: the name of a field says what
stands in it, and one long text takes a tenth of the time that many short ones do."""
AS_WRITTEN = SECRETS | {"NAME", "ADDRESS"}
"""Kinds whose values may have in them what elsewhere hides one: a password with `%40` in it."""
AT_ONCE = 100
"""Values of a text in pieces that are learned together: to learn one takes 0.1 ms at least."""
_BY_SHAPE = frozenset({"EMAIL", "IBAN", "CARD", "IP", "PRIVATE_KEY"})
"""Kinds that need no words beside them."""
MOST_BY_SHAPE = 20_000
"""Values that are learned although their shape says what they are, together with all others."""
_ESCAPED_LINE_END = re.compile(r"(?:\\+r)?\\+n")
_LOOK_ALIKE = ""
"""The kind of what looks like a token."""


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
        self.screen = Screen(scanner, learned)
        self._kinds = kinds
        self._joined: list[Conversation] = []
        self._guard = threading.Lock()
        self._first_shown = ""
        self._is_told = False
        self._scanner = scanner
        self._noted: set[str] = set()
        self._unlearned: list[tuple[str, str]] = []
        """Values that have a token, and were not looked at yet."""

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
        self._learn()
        whole = BETWEEN.join(texts)
        there = list(self._tokens_in(whole))
        finds = self._with_cuts(texts, whole, self.screen.finds(whole))
        found = _in_order(_outside(finds, there), there)
        if not found:
            return texts
        shown = [
            self._edited(text, own, origin, sealed) if own else text
            for text, own in zip(texts, _by_text(found, texts), strict=True)
        ]
        # What was known by the words beside it may stand among them once more, without any.
        return self.tokenised_all(shown, origin, sealed=sealed) if self._learn() else shown

    def remember(self, values: Iterable[tuple[str, str]]) -> None:
        """Find these again, each with its kind, also without the words that made them known: what
        a model has a token for it can have sent back to it."""
        for value, kind in values:
            self._note(value, kind)
        self._learn()

    def _note(self, value: str, kind: str) -> None:
        with self._guard:
            if value not in self._noted:
                self._noted.add(value)
                self._unlearned.append((value, kind))

    def _learn(self) -> bool:
        """Learn what has a token; say whether some of it would not be found by its shape."""
        with self._guard:
            noted, self._unlearned = self._unlearned, []
        if not noted:
            return False
        finds = self._scanner.finds(BETWEEN.join(value for value, _ in noted))
        by_shape, start = {(find.start, find.end) for find in finds}, 0
        hidden: list[tuple[str, str]] = []
        for value, kind in noted:
            if (start, start + len(value)) not in by_shape:
                hidden.append((value, kind))
            start += len(value) + len(BETWEEN)
        learned = self.screen.learned
        before = len(learned)
        learned.add(hidden)
        has_hidden = len(learned) > before
        # The others for what a table cuts of them, unless that takes the room of names.
        learned.add(noted[: max(0, MOST_BY_SHAPE - len(learned))])
        return has_hidden

    def _with_cuts(self, texts: list[str], whole: str, finds: list[Find]) -> list[Find]:
        if cuts.MARK not in whole:
            return finds
        start = 0
        beside: list[Find] = []
        for text in texts:
            for find in cuts.with_cuts(text, [], self.screen):
                beside.append(Find(start + find.start, start + find.end, find.kind))
            start += len(text) + len(BETWEEN)
        return merged([*finds, *beside])

    def defused_all(self, texts: list[str]) -> list[str]:
        """Return the same texts, without what looks like a token and is none."""
        if not any("[" in text for text in texts):
            return texts
        return [tokens.replaced(text, self._known_or_defused) for text in texts]

    def note_origins(self, secrets: Scanner, texts: list[str], server: str) -> None:
        """Remember of which server the secrets in these texts are: they go back there only."""
        whole = BETWEEN.join(texts)
        for find in Screen(secrets, self.screen.learned).finds(whole):
            if find.kind in SECRETS:
                value = self._meant_by(whole[find.start : find.end], find.kind)
                self.vault.token_of(value, find.kind, server)

    def pieces(self) -> PieceScreen:
        """Return what does the same with a text that comes in pieces."""

        def replace(piece: str, kind: str) -> str:
            shown = self._shown(piece, kind, "", False)
            if len(self._unlearned) >= AT_ONCE or kind not in _BY_SHAPE:
                self._learn()
            return shown

        return PieceScreen(self.screen, replace, hides_cuts=True)

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
        if kind == _LOOK_ALIKE:
            return self._known_or_defused(piece)
        if kind == cuts.CUT:
            return cuts.SHOWN
        value = self._meant_by(piece, kind)
        self._note(value, kind)
        token = self.vault.token_of(value, kind, origin, sealed=sealed)
        self._first_shown = self._first_shown or token
        return token

    def _meant_by(self, piece: str, kind: str) -> str:
        """The value that was found, without the escapes that it was written with."""
        if kind == "PRIVATE_KEY":
            return _ESCAPED_LINE_END.sub("\n", piece)
        known = self.screen.learned.meant_by(piece)
        return known if known != piece or kind in AS_WRITTEN else views.undisguised(piece)

    def _tokens_in(self, text: str) -> Iterator[Find]:
        """The tokens in a text, and what looks like one."""
        if "[" in text:
            for found in tokens.TOKEN.finditer(text):
                if found[1] in self._kinds:
                    yield Find(*found.span(), _LOOK_ALIKE)


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
