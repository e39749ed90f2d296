"""A conversation behind a border: its tokens, and what was learned in it."""

import asyncio
import bisect
import functools
import itertools
import re
import threading
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from divingbell import logs
from divingbell.border.masked_values import MaskedValues
from divingbell.border.pictures import Pictures
from divingbell.border.privacy import cuts, views
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.find import Find, merged
from divingbell.border.privacy.kinds import SECRETS
from divingbell.border.privacy.learned import Learned, folded
from divingbell.border.privacy.learner import Learner
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen
from divingbell.border.token_screen import LOOK_ALIKE, TokenScreen
from divingbell.border.vault import tokens
from divingbell.border.vault.vault import Entry, Vault

log = logs.logger("divingbell")

BETWEEN = "\n"
"""Between two texts of a value, which are looked through as one: the name of a field says what
stands in it, and one long text takes a tenth of the time that many short ones do."""
AS_WRITTEN = SECRETS | {"NAME", "ADDRESS"}
"""Kinds whose values may have in them what elsewhere hides one: a password with `%40` in it."""
MOST_JOINED = tokens.MOST_REACHED - 1
"""Other conversations whose tokens are known: a session may be reached by any number of clients,
one after the other."""
MOST_NOTED = 200_000
"""Values with a token that are found again without the words that made them known; as many as a
vault has."""
AT_ONCE = 100
"""Values of a text in pieces that are learned together: to learn one takes 0.1 ms at least."""
_BY_SHAPE = frozenset({"EMAIL", "IBAN", "CARD", "IP", "PRIVATE_KEY"})
"""Kinds that need no words beside them."""
MOST_BY_SHAPE = 20_000
"""Values that are learned although their shape says what they are, together with all others."""
_ESCAPED_LINE_END = re.compile(r"(?:\\+r)?\\+n")


class Conversation:
    """The tokens of one conversation, and the values that were learned in it. Any thread may ask.

    `kinds` are those that are replaced here. Of others a token may be known from before.
    """

    def __init__(
        self,
        vault: Vault,
        scanner: Scanner,
        fields: Fields,
        kinds: frozenset[str],
        masked: MaskedValues | None = None,
    ) -> None:
        self.vault = vault
        self._masked = masked or MaskedValues()
        learned = Learned()
        self.learner = Learner(fields, learned)
        self.screen = TokenScreen(scanner, learned, kinds)
        self._kinds = kinds
        self._sealed = Screen(no_shapes(), Learned())
        self._sealed_values: dict[str, tuple[str, str]] = {}
        """Kinds and sealed values, by the values in small letters."""
        self._joined: list[Conversation] = []
        self._joining: weakref.WeakSet[Conversation] = weakref.WeakSet()
        """Those that know the tokens of this one."""
        self.is_recalled = False
        """Whether it knows what the store has kept of it."""
        self.recalling = asyncio.Lock()
        self._guard = threading.Lock()
        self.pictures = Pictures(self._kinds_in)
        self._first_shown = ""
        self._is_told = False
        self._scanner = scanner
        self._noted: set[str] = set()
        self._unlearned: list[tuple[str, str]] = []
        """Values that have a token, and were not looked at yet."""

    def join(self, other: "Conversation") -> None:
        """Know the tokens of another conversation of the same user, whose session it reaches, and
        find what is learned there.

        What was learned in one that is too long ago stays known.
        """
        with self._guard:
            if other is self or other in self._joined[-1:]:
                return
            joined = [*(each for each in self._joined if each is not other), other]
            for each in joined[:-MOST_JOINED]:
                self._keep_learned(each)
                each._joining.discard(self)
            other._joining.add(self)
            self._know(joined[-MOST_JOINED:])

    def leave(self) -> None:
        """Have its tokens and what was learned here known nowhere else any more: it is over."""
        for each in list(self._joining):
            with each._guard:
                each._know([one for one in each._joined if one is not self])

    def _know(self, joined: "list[Conversation]") -> None:
        self._joined = joined
        self.screen.learned_elsewhere = tuple(each.screen.learned for each in joined)

    def _keep_learned(self, other: "Conversation") -> None:
        refused = self.screen.learned.add_all_of(other.screen.learned)
        if refused:
            log.warning("%d values of another connection found no room: they are shown", refused)

    def entry_of(self, token: str) -> Entry | None:
        """Return what a token stands for, if it is one that was given out here."""
        for each in self._reached():
            if (found := each.vault.entry_of(token)) is not None:
                return found
        return None

    def _reached(self) -> "tuple[Conversation, ...]":
        """Those whose tokens are known here."""
        return (self, *self._joined)

    def example(self) -> str:
        """Return a token where its reader has to be told now what that is: once."""
        with self._guard:
            if self._is_told or not self._first_shown:
                return ""
            self._is_told = True
            return self._first_shown

    def tokenised(self, text: str) -> str:
        """Return a text with tokens in the places of values, for those who may not see them.

        What looks like a token and is none names nothing any more.
        """
        return self.tokenised_all([text])[0]

    def tokenised_all(
        self,
        texts: list[str],
        origin: str = "",
        *,
        sealed: bool = False,
        leaving: Collection[str] = (),
        is_second: bool = False,
    ) -> list[str]:
        """Do the same with the texts of one value, which may explain one another.

        `origin` is the tool that they come from. What is sealed is not put back into code either.
        `leaving` are finds that stay as they are, unless they have been sealed. It is done twice
        at most: a token is a word beside the next number, too.
        """
        self._learn()
        whole = BETWEEN.join(texts)
        finds = self._all_finds(texts, whole, leaving)
        if sealed and self._seal_finds(whole, finds, origin):
            finds = self._all_finds(texts, whole, leaving)
        shown = self._replaced(texts, whole, finds, origin)
        # What was known by the words beside it may stand among them once more, without any.
        if not self._learn() or is_second:
            return shown
        return self.tokenised_all(shown, origin, sealed=sealed, leaving=leaving, is_second=True)

    def rejoined(self, texts: list[str]) -> list[str]:
        """Return texts that are read one right after the other, with tokens for those values that
        lie across two of them: each in its first text, and nothing of it in the others."""
        self._learn()
        whole, ends = "".join(texts), list(itertools.accumulate(map(len, texts)))
        across = [
            find
            for find in self.screen.finds(whole)
            if find.kind != LOOK_ALIKE and find.end > ends[bisect.bisect_right(ends, find.start)]
        ]
        if not across:
            return texts
        shown: list[str] = []
        start = 0
        for text, end in zip(texts, ends, strict=True):
            shown.append(self._without(text, start, across, whole))
            start = end
        return shown

    def _without(self, text: str, start: int, across: list[Find], whole: str) -> str:
        """One of the texts that were joined, which begins there."""
        parts: list[str] = []
        at, end = start, start + len(text)
        for find in across[bisect.bisect_right(across, start, key=lambda find: find.end) :]:
            if find.start >= end:
                break
            parts.append(text[at - start : max(find.start, start) - start])
            if find.start >= start:
                parts.append(self._shown(whole[find.start : find.end], find.kind, ""))
            at = min(find.end, end)
        return "".join((*parts, text[at - start :]))

    def _all_finds(self, texts: list[str], whole: str, leaving: Collection[str]) -> list[Find]:
        finds = self._with_cuts(texts, whole, self.screen.values(whole))
        return [find for find in finds if not (leaving and self._stays(whole, find, leaving))]

    def _seal_finds(self, whole: str, finds: list[Find], origin: str) -> bool:
        """Seal what was found; say whether more may be found now."""
        known = len(self.screen.learned)
        pieces = ((whole[find.start : find.end], find.kind) for find in finds)
        values = {self._meant_by(*piece): piece[1] for piece in pieces if piece[1] != cuts.CUT}
        self.seal(values, origin)
        return len(self.screen.learned) > known

    def resealed_all(self, texts: list[str], origin: str) -> list[str]:
        """Return the same texts with tokens for sealed values alone: a tool that code has sent
        one to may send it back. What looks like a token and is none names nothing any more."""
        sealing = [each for each in self._reached() if each._sealed_values]
        if not sealing:
            return self.defused_all(texts)
        whole = BETWEEN.join(texts)
        finds = merged([find for each in sealing for find in each._sealed.finds(whole)])
        return self._replaced(texts, whole, finds, origin)

    def seal(self, values: Mapping[str, str], origin: str) -> dict[str, str]:
        """Seal values, by their kinds: code gets their tokens from now on, wherever they come up.

        Return the tokens by values.
        """
        fresh = [(value, kind) for value, kind in values.items() if self._is_fresh(value, kind)]
        refused = self._sealed.learned.add(fresh)
        self.screen.learned.add(fresh)
        if refused:
            log.warning("%d sealed values are not found again: there are too many", refused)
        return {value: self._token(value, kind, origin) for value, kind in values.items()}

    def _is_fresh(self, value: str, kind: str) -> bool:
        """Take a value down as sealed; return whether it was not yet."""
        if self._sealed_twin(value) is not None:
            return False
        self.vault.token_of(value, kind, sealed=True)
        self._sealed_values[folded(value)] = (kind, value)
        return True

    def found_in(self, texts: Iterable[str]) -> set[str]:
        """Return all that is found in texts, as it stands there."""
        whole = BETWEEN.join(texts)
        return {whole[find.start : find.end] for find in self.screen.values(whole)}

    def has_shown(self, picture: bytes) -> bool:
        """Whether this very picture was shown, here or where tokens are known."""
        return any(each.pictures.has(picture) for each in self._reached())

    def _kinds_in(self, texts: Iterable[str]) -> set[str]:
        """The kinds of what is found in texts that were drawn, here or where tokens are known."""
        self._learn()
        whole = BETWEEN.join(texts)
        return {find.kind for each in self._reached() for find in each.screen.values(whole)}

    def kinds_of(self, values: Iterable[str]) -> dict[str, str]:
        """Return the kinds of those values that are of one as a whole, by their shapes."""
        whole = BETWEEN.join(each for each in values if BETWEEN not in each)
        found = {whole[find.start : find.end]: find.kind for find in self.screen.values(whole)}
        return {value: found[value] for value in values if value in found}

    def _stays(self, whole: str, find: Find, leaving: Collection[str]) -> bool:
        piece = whole[find.start : find.end]
        return piece in leaving and self._sealed_twin(self._meant_by(piece, find.kind)) is None

    def _replaced(
        self, texts: list[str], whole: str, finds: Iterable[Find], origin: str
    ) -> list[str]:
        found = self.screen.with_tokens(whole, list(finds))
        if not found:
            return texts
        return [
            self._edited(text, own, origin) if own else text
            for text, own in zip(texts, _by_text(found, texts), strict=True)
        ]

    def remember(self, entries: Iterable[Entry]) -> None:
        """Find these again, also without the words that made them known: what a model has a token
        for it can have sent back to it. What was sealed stays so, also where that was long ago."""
        fresh: list[tuple[str, str]] = []
        for entry in entries:
            self._note(entry.value, entry.kind)
            if entry.sealed and folded(entry.value) not in self._sealed_values:
                self._sealed_values[folded(entry.value)] = (entry.kind, entry.value)
                fresh.append((entry.value, entry.kind))
        self._sealed.learned.add(fresh)
        self._learn()

    def _note(self, value: str, kind: str) -> None:
        with self._guard:
            if value not in self._noted and len(self._noted) < MOST_NOTED:
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

    def without_tokens(self, texts: list[str]) -> list[str]:
        """Return the same texts, in which nothing names anything; the same list if nothing did."""

        def defused(token: str) -> str:
            return tokens.defused(token) if tokens.kind_of(token) in self._kinds else token

        if not any("[" in text for text in texts):
            return texts
        changed = [tokens.replaced(text, defused) for text in texts]
        return texts if changed == texts else changed

    def note_origins(self, secrets: Scanner, texts: Iterable[str], origin: str) -> None:
        """Remember of which tool the secrets in these texts are: they go to its server only."""
        whole = BETWEEN.join(texts)
        for find in Screen(secrets, self.screen.learned).finds(whole):
            if find.kind in SECRETS:
                value = self._meant_by(whole[find.start : find.end], find.kind)
                self.vault.token_of(value, find.kind, origin)

    def pieces(self) -> PieceScreen:
        """Return what does the same with a text that comes in pieces."""

        def replace(piece: str, kind: str) -> str:
            shown = self._shown(piece, kind, "")
            if len(self._unlearned) >= AT_ONCE or kind not in _BY_SHAPE:
                self._learn()
            return shown

        return PieceScreen(self.screen, replace, hides_cuts=True)

    def _known_or_defused(self, token: str) -> str:
        is_ours = tokens.kind_of(token) not in self._kinds or self.entry_of(token) is not None
        return token if is_ours else tokens.defused(token)

    def _edited(self, text: str, finds: list[Find], origin: str) -> str:
        parts: list[str] = []
        at = 0
        for find in finds:
            piece = text[find.start : find.end]
            parts += text[at : find.start], self._shown(piece, find.kind, origin)
            at = find.end
        return "".join((*parts, text[at:]))

    def _shown(self, piece: str, kind: str, origin: str) -> str:
        if kind == LOOK_ALIKE:
            return self._known_or_defused(piece)
        if kind == cuts.CUT:
            return cuts.SHOWN
        value = self._meant_by(piece, kind)
        self._note(value, kind)
        token = self._token(value, kind, origin)
        self._masked.add(kind)
        self._first_shown = self._first_shown or token
        return token

    def _meant_by(self, piece: str, kind: str) -> str:
        """The value that was found, without the escapes that it was written with."""
        if kind == "PRIVATE_KEY":
            return _ESCAPED_LINE_END.sub("\n", piece)
        for learned in self.screen.all_learned:
            if (known := learned.meant_by(piece)) != piece:
                return known
        return piece if kind in AS_WRITTEN else views.undisguised(piece)

    def _token(self, value: str, kind: str, origin: str) -> str:
        """The token of a value. One that was sealed in other letters, large for small, is sealed
        too, and has come from where that one has."""
        twin = self._sealed_twin(value)
        if twin is None:
            return self.vault.token_of(value, kind, origin)
        vault, entry = twin
        if entry.value != value:
            for each in entry.origins:
                vault.token_of(value, entry.kind, each, sealed=True)
        return vault.token_of(value, entry.kind, origin, sealed=True)

    def _sealed_twin(self, value: str) -> tuple[Vault, Entry] | None:
        """The same value as it was sealed, in large letters or small, and the vault it is in."""
        key = folded(value)
        for each in self._reached():
            sealed = each._sealed_values.get(key)
            entry = None if sealed is None else each.vault.entry_for(*sealed)
            if entry is not None:
                return each.vault, entry
        return None


@functools.cache
def no_shapes() -> Scanner:
    """Return a scanner that knows no shapes. To make the first one takes a tenth of a second, where
    its expressions are not kept yet: not on the event loop."""
    return Scanner(())


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
