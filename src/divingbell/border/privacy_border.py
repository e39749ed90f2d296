"""The border that keeps secrets, and personal data where that is wanted, from models.

The code in a sandbox computes with real values. What leaves for a model has tokens in their places,
and what a model writes has the values in the places of those. For tools whose results are behind
the sandbox's border, code gets tokens too, and only the arguments of tools have the values.
"""

import ast
import dataclasses
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from divingbell import logs
from divingbell.border import binary
from divingbell.border.border import Charge, Passage, Reader, Reading, Restored, Shown, Value
from divingbell.border.conversation import BETWEEN, Conversation
from divingbell.border.masked_values import MaskedValues
from divingbell.border.parted_outputs import is_parted, without_parted
from divingbell.border.pictures import HELD_BACK, Pictures
from divingbell.border.privacy import shown_tables
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.kinds import PERSONAL, SECRETS
from divingbell.border.privacy.learner import MOST_FILE, Learner, Lesson
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.seals import Seals, replaced, with_payloads
from divingbell.border.vault import tokens
from divingbell.border.vault.vault import Entry, Vault, Vaults
from divingbell.border.walk import Leaves, with_texts
from divingbell.command import CommandResult
from divingbell.errors import ToolFailed, UnknownToken
from divingbell.models import Event, Output, Result
from divingbell.principal import Principal
from divingbell.settings.kinds import VALUE
from divingbell.settings.privacy import BorderLine, PrivacyRules
from divingbell.shares import weight

log = logs.logger("divingbell")

LONG = 8_000
"""Characters; where there are more, they are looked through beside the event loop."""
NOTE = (
    "{what} are not shown to you: words such as {token} stand for them (the setting "
    "`privacy` says for what). Write such a word exactly as it stands, in quotes: in strings of "
    "Python code and in arguments of tools it becomes the value again, but not in lines for the "
    "shell"
)
NOTE_ON_SEALS = (
    ". Of some tools the code has such words as well: there only arguments of tools become values"
)
NOTE_ON_MISSED = (
    "More came from {whose} than is looked through for names and addresses: some of them may be "
    "shown as they are"
)
_KEPT_IN = "; code finds it in "
_HELD = re.compile(
    rf"\[([a-z+./-]{{1,80}}) of [0-9,]{{1,20}} bytes is held back: [^\]\n]{{1,500}}?{_KEPT_IN}"
    r"(\S{1,255})\]"
)
WHAT = {True: "personal data and secrets", False: "secrets, such as keys and passwords,"}
Given = TypeVar("Given")
Made = TypeVar("Made")
MOST_TOOLS = 10_000
"""Tools whose lines on the border are remembered; then all are found anew."""
NOT_READ = (
    "{tool}: the result is kept from the code: some of its fields must be, and not all of it could "
    "be looked at ({problem}). The call was made: ask for less at a time"
)
MOST_PARSED = 1 << 15
"""Characters of code that are parsed where a token in it is not known: it may be in a comment."""
MOST_CONVERSATIONS = 1000
"""Conversations of one user whose learned values are remembered; those used least recently go
first."""
MOST_TOLD = 20
"""Unknown tokens of a text that are named in the log."""
_CUT = ("stdout", "stderr")
"""Events whose texts are pieces of one long text."""
_DRAWN = "image/svg+xml"
_SHOWN = (Event, Result, CommandResult)


class PrivacyBorder:
    """Puts tokens into the places of values on their way to a model, and back.

    `kinds` are those that are replaced: secrets, or personal data as well, and those of one's own.
    """

    def __init__(
        self,
        vaults: Vaults,
        scanner: Scanner,
        kinds: frozenset[str],
        fields: Fields,
        rules: PrivacyRules,
        masked: MaskedValues | None = None,
    ) -> None:
        self._vaults = vaults
        self._scanner = scanner
        self._kinds = kinds | {VALUE} if rules.border else kinds
        self._secrets = Scanner(SECRETS)
        self._fields = fields
        self._rules = rules
        self.is_personal = not kinds.isdisjoint(PERSONAL)
        self.waits = scanner.waits
        """Whether a look at a text waits for an analyzer: then it is never taken on the loop."""
        self._guard = threading.RLock()  # threads ask, too: the audit log's, for one
        self._conversations: dict[str, OrderedDict[str, Conversation]] = {}
        """By users, and by the names of their conversations."""
        self._principals: dict[str, Principal] = {}
        """Whose they are, by the names of their vaults."""
        vaults.on_gone(self._forget)
        self.masked = MaskedValues() if masked is None else masked
        self._lines: dict[str, tuple[BorderLine, ...]] = {}
        """What the settings say of the border, by tool."""

    # Inward

    async def inward(
        self, value: Value, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Value:
        words = await self._words_in(value, written)
        entries = await self._entries(words.tokens, principal)
        if to and words.near_miss:
            raise UnknownToken(
                f"{words.near_miss[1:-1]!r} in brackets looks like a word that stands for a hidden "
                "value, and is none: write it as it stood in the result, letter by letter"
            )

        def back(token: str) -> str:
            entry = entries.get(token)
            if entry is None or (not to and (entry.sealed or entry.kind in SECRETS)):
                return token
            if entry.kind in SECRETS and to not in entry.servers:
                raise UnknownToken(_kept_secret(entry, to))
            return entry.value

        if not entries:
            return value
        changed: Value = await _beside(
            lambda given: with_texts(given, lambda text: tokens.replaced(text, back)), value
        )
        return changed

    async def _words_in(self, value: object, written: bytes | None = None) -> "_Words":
        """Find what looks like tokens, unless the JSON that was written says there is none."""
        if written is not None and not await weight.beside(tokens.may_be_in_json, written):
            return _Words()
        return await _with_leaves(lambda leaves: _Words.of(leaves, self._kinds), value)

    async def restored(
        self, value: object, principal: Principal, written: bytes | None = None
    ) -> tuple[Restored, ...]:
        words = await self._words_in(value, written)
        entries = await self._entries(words.tokens, principal)
        return tuple(
            Restored(token, entry.kind, entry.origins) for token, entry in sorted(entries.items())
        )

    async def values_in(self, code: str, principal: Principal) -> Mapping[str, str]:
        if "[" not in code:
            return {}
        try:
            entries = await self._entries_in(code, principal)
        except UnknownToken:
            constants = await weight.in_thread(lambda: _constants(code))
            entries = await self._entries_in(constants, principal)
        # Where code shall not have the value, the token itself reaches the tool, and becomes it.
        return {
            token: entry.value
            for token, entry in entries.items()
            if entry.kind not in SECRETS and not entry.sealed
        }

    async def _entries_in(
        self, value: object, principal: Principal, *, needs_all: bool = True
    ) -> dict[str, Entry]:
        wanted = (await self._words_in(value)).tokens
        return await self._entries(wanted, principal, needs_all=needs_all)

    async def _entries(
        self, wanted: frozenset[str], principal: Principal, *, needs_all: bool = True
    ) -> dict[str, Entry]:
        """What tokens stand for."""
        if not wanted:
            return {}
        conversation = self._of(principal)
        found = {token: conversation.entry_of(token) for token in wanted}
        missing = [token for token, entry in found.items() if entry is None]
        if missing:
            look_up = self._vaults.entries if needs_all else self._vaults.known
            found |= await look_up(principal, missing)
        entries = {token: entry for token, entry in found.items() if entry is not None}
        await _beside(conversation.remember, list(entries.values()))
        return entries

    async def reveal(self, text: str, principal: Principal) -> tuple[str, int]:
        entries = await self._entries_in(text, principal, needs_all=False)
        self._tell_of_unknown(tokens.in_text(text) - entries.keys())
        return tokens.replaced(text, lambda token: _value(entries, token)), len(entries)

    def _tell_of_unknown(self, left: Iterable[str]) -> None:
        unknown = sorted(token for token in left if tokens.kind_of(token) in self._kinds)
        if unknown:
            more = f" and {len(unknown) - MOST_TOLD} more" if len(unknown) > MOST_TOLD else ""
            log.warning(
                "a text was revealed but for %s%s: its conversation does not know them",
                ", ".join(unknown[:MOST_TOLD]),
                more,
            )

    # Outward

    async def outward(
        self, value: Value, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Value:
        conversation = await self.recalled(principal)
        if self.is_personal and reader == "model" and isinstance(value, _SHOWN):
            await _learn_shown(conversation, _shown_in(value))

        holds_back = self.is_personal and reader == "model" and not _is_readable_whole(value)
        if holds_back or (isinstance(value, Result) and is_parted(value)):
            value = await _beside(
                lambda given: self._as_shown(given, conversation, holds_back=holds_back),
                value,
                apart=self.waits,
            )

        def changed(leaves: Leaves) -> Any:
            if reader == "sandbox":
                return self._entering(conversation, leaves, value, origin)
            return leaves.replaced_by(conversation.tokenised_all(leaves.texts))

        passed: Value = await _with_leaves(changed, value, apart=self.waits)
        return passed

    def _as_shown(self, value: Any, conversation: Conversation, *, holds_back: bool) -> Any:
        """A value without what can't be looked through, and without values that outputs part."""
        if holds_back:
            value = _without_binary(value, self._looker(conversation))
        if isinstance(value, Result) and is_parted(value):
            value = without_parted(value, conversation.rejoined)
        return value

    def _entering(self, conversation: Conversation, leaves: Leaves, value: Any, origin: str) -> Any:
        """A result as code gets it. What is known of it now is found again later.

        Raises:
            ToolFailed: it can't be told what of it code may have.
        """
        # No server was ever told a token: one that stands in its words was guessed, perhaps one of
        # thousands, and code that passes it on would have the value sent.
        texts = conversation.without_tokens(leaves.texts)
        if texts is not leaves.texts:
            value = leaves.replaced_by(texts)
            leaves = Leaves(value)
        seals = Seals(origin, self._lines_of(origin))
        if seals.is_by_field or seals.whole.reader == "sandbox":
            value = binary.taken_out(value)
            sealed = self._sealed_in(conversation, Leaves(value), value, origin, seals)
            return binary.put_back(sealed, is_held=binary.held_never)
        return self._sealed_in(conversation, leaves, value, origin, seals)

    def _sealed_in(
        self, conversation: Conversation, leaves: Leaves, value: Any, origin: str, seals: Seals
    ) -> Any:
        lesson = conversation.learner.learn(value, origin, seals)
        _tell(lesson, origin)
        if seals.is_by_field and lesson.problem:
            raise ToolFailed(NOT_READ.format(tool=origin, problem=lesson.problem), "tool_result")
        if lesson.sealed:
            leaves = Leaves(_sealed_whole(conversation, value, lesson, origin))
        if seals.whole.reader == "sandbox":
            leaving = conversation.found_in(lesson.open) - conversation.found_in(lesson.closed)
            conversation.note_origins(self._secrets, lesson.open, origin)
            texts = conversation.tokenised_all(leaves.texts, origin, sealed=True, leaving=leaving)
        else:
            conversation.note_origins(self._secrets, leaves.texts, origin)
            texts = conversation.resealed_all(leaves.texts, origin)
        return leaves.replaced_by(texts)

    def _lines_of(self, origin: str) -> tuple[BorderLine, ...]:
        if not self._rules.border:
            return ()
        found = self._lines.get(origin)
        if found is None:
            if len(self._lines) >= MOST_TOOLS:
                self._lines.clear()
            found = self._lines[origin] = self._rules.borders_in(origin)
        return found

    def text(self, text: str, principal: Principal, *, goes_on: bool = False) -> str:
        conversation = self._of(principal)
        if not goes_on:
            return conversation.tokenised(text)
        pieces = conversation.pieces()
        return pieces.feed(text) + pieces.feed("")

    def passage(self, principal: Principal, charge: Charge) -> Passage:
        return PrivacyPassage(self, principal, self._of(principal), charge)

    def note(self, principal: Principal) -> str:
        conversation = self._of(principal)
        notes = []
        if example := conversation.example():
            seals = NOTE_ON_SEALS if self._rules.border else ""
            notes.append(NOTE.format(what=WHAT[self.is_personal], token=example) + seals)
        if self.is_personal and (missed := conversation.learner.newly_missed()):
            notes.append(NOTE_ON_MISSED.format(whose=", ".join(missed)))
        return ". ".join(notes)

    def reading(self, name: str, principal: Principal) -> Reading:
        return FileReading(name, self._of(principal).learner)

    def learns(self, principal: Principal) -> bool:
        return self.is_personal

    async def learn_told(self, told: bytes, principal: Principal, charge: Charge) -> None:
        if self.is_personal:
            learner = (await self.recalled(principal)).learner
            lesson = await weight.charged(lambda: learner.learn_told(told), charge)
            _tell(lesson, "the tables of a session")

    def holds_back(self, principal: Principal, content: bytes = b"") -> bool:
        # Nothing is made or moved for it.
        of_user = self._conversations.get(principal.user) or OrderedDict()
        known = of_user.get(principal.conversation)
        return self.is_personal and (known is None or not known.has_shown(content))

    def _looker(self, conversation: Conversation) -> Pictures | None:
        """Who looks at pictures, where some may be shown."""
        return conversation.pictures if self._rules.images == "checked" else None

    def join(self, client: Principal, session: Principal) -> None:
        first, second = self._of(client), self._of(session)
        first.join(second)
        second.join(first)

    async def recalled(self, principal: Principal) -> Conversation:
        """Return a conversation that knows what was kept of it: the same value has the same token,
        and what has one is found again, also after a restart."""
        conversation = self._of(principal)
        if not conversation.is_recalled:
            async with conversation.recalling:
                if not conversation.is_recalled:
                    kept = await self._vaults.recall(principal)
                    ours = [entry for entry in kept if entry.kind in self._kinds]
                    if ours:
                        await weight.in_thread(lambda: conversation.remember(ours))
                    conversation.is_recalled = True
        return conversation

    def _of(self, principal: Principal) -> Conversation:
        with self._guard:
            known = self._conversations.get(principal.user) or OrderedDict()
            found = known.get(principal.conversation)
            if found is None:
                return self._begin(principal)
            found.vault.touch()
            known.move_to_end(principal.conversation)
            return found

    def _begin(self, principal: Principal) -> Conversation:
        vault = self._vaults.of(principal)  # which may have others forgotten
        begun = Conversation(vault, self._scanner, self._fields, self._kinds, self.masked)
        known = self._conversations.setdefault(principal.user, OrderedDict())
        known[principal.conversation] = begun
        self._principals[vault.name] = principal
        if len(known) > MOST_CONVERSATIONS:
            self._forget_oldest(known)
        return begun

    def _forget_oldest(self, known: "OrderedDict[str, Conversation]") -> None:
        """Forget the one that was used longest ago, of those that are over."""
        newest = next(reversed(known))
        over = (each for name, each in known.items() if name != newest and not each.vault.is_held)
        if (oldest := next(over, None)) is not None:
            self._forget(oldest.vault)

    def _forget(self, vault: Vault) -> None:
        """Forget what was learned in a conversation, and where its tokens are known."""
        with self._guard:
            principal = self._principals.pop(vault.name, None)
            known = self._conversations.get(principal.user) if principal is not None else None
            if principal is None or known is None:
                return
            if (conversation := known.pop(principal.conversation, None)) is not None:
                conversation.leave()
            if not known:
                del self._conversations[principal.user]

    def hold(self, principal: Principal) -> Callable[[], None]:
        return self._of(principal).vault.hold()

    async def learn(self, given: object, principal: Principal, tool: str) -> None:
        learner = self._of(principal).learner
        lesson = await _beside(lambda each: learner.learn_given(each, tool), given)
        _tell(lesson, f"the arguments of {tool}")


class FileReading:
    """Keeps the start of a file while it passes, and learns from it what is personal."""

    def __init__(self, name: str, learner: Learner) -> None:
        self._name = name
        self._learner = learner
        self._start = bytearray()

    def add(self, piece: bytes) -> None:
        self._start += piece[: MOST_FILE - len(self._start)]

    async def end(self) -> None:
        data = bytes(self._start)
        _tell(await weight.in_thread(lambda: self._learner.learn_file(self._name, data)), "a file")


class PrivacyPassage:
    """The way out for the events of one run."""

    def __init__(
        self,
        border: PrivacyBorder,
        principal: Principal,
        conversation: Conversation,
        charge: Charge,
    ) -> None:
        self._border = border
        self._principal = principal
        self._conversation = conversation
        self._charge = charge
        self._pieces: dict[str, PieceScreen] = {}
        self._last: dict[str, Any] = {}

    async def event(self, event: Shown) -> Iterable[Shown]:
        if event.type in _CUT:
            await self._border.recalled(self._principal)
            if event.type not in self._pieces:
                self._pieces[event.type] = self._conversation.pieces()
            self._last[event.type] = event
            if self._border.is_personal:
                await _learn_shown(self._conversation, [event.text])
            feed = self._pieces[event.type].feed
            shown = await _beside(feed, event.text, self._charge, apart=self._border.waits)
            return [dataclasses.replace(event, text=shown)] if shown else []
        passed = await self._border.outward(event, self._principal)
        if event.type in ("progress", "log", "notice"):
            return [passed]
        if event.type == "display":
            return [*await self._decided(), passed]
        return [*await self.end(), passed]

    async def _decided(self) -> list[Any]:
        """What has waited and is decided. What may be half a value goes on waiting: shown before a
        display, the other half after it, it would be read as a whole."""
        fed = [
            (name, await _beside(pieces.feed, "", self._charge, apart=self._border.waits))
            for name, pieces in self._pieces.items()
        ]
        return [dataclasses.replace(self._last[name], text=text) for name, text in fed if text]

    async def end(self) -> Iterable[Any]:
        left, self._pieces = self._pieces, {}
        rest = [(name, await self._rest(pieces)) for name, pieces in left.items()]
        return [dataclasses.replace(self._last[name], text=text) for name, text in rest if text]

    async def _rest(self, pieces: PieceScreen) -> str:
        if pieces.held <= LONG:
            return weight.timed(pieces.end, self._charge)
        return await weight.charged(pieces.end, self._charge)


def _shown_in(value: Event | Result | CommandResult) -> list[Any]:
    """What may have tables in it, of what a session shows."""
    if isinstance(value, CommandResult):
        return [value.stdout, value.stderr]
    texts: list[Any] = [each.data for each in value.outputs if isinstance(each.data, str)]
    return [*texts, value.value] if isinstance(value, Result) else texts


async def _learn_shown(conversation: Conversation, shown: list[Any]) -> None:
    """Learn what personal columns of tables say, before anyone sees it."""
    told = [each for each in shown if _may_tell(each)]
    if told:
        await weight.in_thread(lambda: conversation.learner.learn_shown(told))


def _may_tell(shown: Any) -> bool:
    return (
        shown_tables.may_be_in(shown) if isinstance(shown, str) else isinstance(shown, list | dict)
    )


def _without_binary(value: Any, pictures: Pictures | None = None) -> Any:
    """Hold back what can't be looked through."""
    if isinstance(value, Event | Result) and value.outputs:
        outputs = tuple(_looked_through(output, pictures) for output in value.outputs)
        return dataclasses.replace(value, outputs=outputs)
    return value


def _is_readable_whole(value: Any) -> bool:
    """Whether all that it shows is text."""
    return not isinstance(value, Event | Result) or all(map(_is_readable, value.outputs))


def _is_readable(output: Output) -> bool:
    return isinstance(output.data, str) and output.type != _DRAWN


def _looked_through(output: Output, pictures: Pictures | None) -> Output:
    if _is_readable(output):
        return output
    why = HELD_BACK
    if pictures is not None and isinstance(output.data, bytes):
        why = pictures.problem_of(output.data, output.texts)
        if not why:
            return dataclasses.replace(output, texts=None)
    kept = f"{_KEPT_IN}{output.path}" if output.path else ""
    words = f"[{output.type} of {len(output.data):,} bytes is held back: {why}{kept}]"
    return Output("text/plain", words, output.name, output.cell)


def held_back(output: Output) -> tuple[str, str] | None:
    """Return the type and the file of what was held back from the model here, for a person."""
    found = _HELD.fullmatch(output.data) if isinstance(output.data, str) else None
    return None if found is None else (found[1], found[2])


def _sealed_whole(conversation: Conversation, value: Any, lesson: Lesson, origin: str) -> Any:
    """A result with tokens for the values below its sealed fields, and for the same ones
    elsewhere in it."""
    shapes = conversation.kinds_of([text for text, kind in lesson.sealed.items() if not kind])
    kinds = {text: kind or shapes.get(text, VALUE) for text, kind in lesson.sealed.items()}
    tokens_by_value = conversation.seal(kinds, origin)
    return with_payloads(value, lambda each: replaced(each, tokens_by_value))


def _tell(lesson: Lesson, origin: str) -> None:
    """Say in the log what was not learned, and so is not hidden."""
    if lesson.refused:
        log.warning(
            "%d personal values of %s found no room: they are shown", lesson.refused, origin
        )
    if lesson.problem:
        log.info("not all of %s was looked at for personal values: %s", origin, lesson.problem)


def _constants(code: str) -> list[str]:
    """The texts in code, without comments; all of it where that can't be told."""
    try:
        tree = ast.parse(code) if len(code) <= MOST_PARSED else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree = None
    if tree is None:
        return [code]
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return [
        each if isinstance(each, str) else each.decode("utf-8", "replace")
        for each in constants
        if isinstance(each, str | bytes)
    ]


def _value(entries: Mapping[str, Entry], token: str) -> str:
    entry = entries.get(token)
    return token if entry is None else entry.value


def _kept_secret(entry: Entry, to: str) -> str:
    whose = " and ".join(sorted(entry.servers)) or "no server"
    return (
        f"{entry.token} stands for a secret that came from {whose}, and is sent nowhere else: not "
        f"to {to}"
    )


class _Words(NamedTuple):
    """What looks like tokens in a value, of those kinds that there are."""

    tokens: frozenset[str] = frozenset()
    near_miss: str = ""
    """The first word that a model or code has changed: a tool would get it as it stands."""

    @classmethod
    def of(cls, leaves: Leaves, kinds: Container[str]) -> "_Words":
        # As one text: neither goes over a line, so that none is made of two texts.
        whole = BETWEEN.join(leaves.texts)
        meant = (token for token in tokens.in_text(whole) if tokens.kind_of(token) in kinds)
        near = (word for word in tokens.near_misses(whole) if _kind_meant_by(word) in kinds)
        return cls(frozenset(meant), next(near, ""))


def _kind_meant_by(near_miss: str) -> str:
    return tokens.kind_of(near_miss.upper().replace(" ", "_").replace("-", "_"))


async def _with_leaves(work: Callable[[Leaves], Made], value: Any, *, apart: bool = False) -> Made:
    """Do work on the texts of a value: at once, or in a thread if there are many or long ones, or
    if the work waits for something (`apart`).

    Either way the value is walked through once, but for the parts that are too many.
    """

    def small() -> tuple[Made] | None:
        leaves = Leaves.of_small(value, weight.LARGE_COUNT, LONG)
        return None if leaves is None else (work(leaves),)

    done = None if apart else weight.timed(small, weight.charging())
    if done is not None:
        return done[0]
    return await weight.in_thread(lambda: work(Leaves(value)))


async def _beside(
    work: Callable[[Given], Made],
    value: Given,
    charge: Charge | None = None,
    *,
    apart: bool = False,
) -> Made:
    """Do work on a value: at once, or in a thread if it has many parts or long texts, or if the
    work waits for something (`apart`)."""
    if not apart and not weight.is_large(value, text=LONG):
        return weight.timed(lambda: work(value), charge or weight.charging())
    if charge is None:
        return await weight.in_thread(lambda: work(value))
    return await weight.charged(lambda: work(value), charge)
