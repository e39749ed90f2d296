"""The border that keeps secrets, and personal data where that is wanted, from models.

The code in a sandbox computes with real values. What leaves for a model has tokens in their places,
and what a model writes has the values in the places of those. For tools whose results are behind
the sandbox's border, code gets tokens too, and only the arguments of tools have the values.
"""

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from divingbell.border.border import Passage, Reader, Reading, Shown, Value
from divingbell.border.conversation import Conversation
from divingbell.border.privacy import shown_tables
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.kinds import PERSONAL, SECRETS
from divingbell.border.privacy.learner import MOST_FILE, Learner
from divingbell.border.privacy.pieces import PieceScreen
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.vault import tokens
from divingbell.border.vault.vault import Entry, Vaults
from divingbell.border.walk import Leaves, with_texts
from divingbell.command import CommandResult
from divingbell.errors import UnknownToken
from divingbell.models import Event, Output, Result
from divingbell.principal import Principal
from divingbell.settings.privacy import PrivacyRules
from divingbell.shares import weight

LONG = 8_000
"""Characters; where there are more, they are looked through beside the event loop."""
NOTE = (
    "{what} are not shown to you: words such as {token} stand for them (the setting "
    "`privacy` says for what). Write such a word as it stands: in strings of Python code and in "
    "arguments of tools it becomes the value again"
)
HELD_BACK = "with `privacy` set to personal, what can't be read as text is not shown"
WHAT = {True: "personal data and secrets", False: "secrets, such as keys and passwords,"}
Made = TypeVar("Made")
MOST_CONVERSATIONS = 1000
"""Conversations whose learned values are remembered; those used least recently go first."""
_CUT = ("stdout", "stderr")
"""Events whose texts are pieces of one long text."""
_DRAWN = "image/svg+xml"


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
    ) -> None:
        self._vaults = vaults
        self._scanner = scanner
        self._kinds = kinds
        self._secrets = Scanner(SECRETS)
        self._fields = fields
        self._rules = rules
        self._is_personal = not kinds.isdisjoint(PERSONAL)
        self._conversations: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    # Inward

    async def inward(self, value: Value, principal: Principal, to: str = "") -> Value:
        entries = await self._entries(Leaves(value).texts, principal)

        def back(token: str) -> str:
            entry = entries.get(token)
            if entry is None or (entry.kind in SECRETS and not to):
                return token
            if entry.kind in SECRETS and to not in entry.origins:
                raise UnknownToken(_kept_secret(entry, to))
            return entry.value

        if not entries:
            return value
        changed: Value = with_texts(value, lambda text: tokens.replaced(text, back))
        return changed

    async def values_in(self, code: str, principal: Principal) -> Mapping[str, str]:
        entries = await self._entries([code] if isinstance(code, str) else [], principal)
        # Where code shall not have the value, the token itself reaches the tool, and becomes it.
        return {
            token: entry.value
            for token, entry in entries.items()
            if entry.kind not in SECRETS and not entry.sealed
        }

    async def _entries(self, texts: Iterable[str], principal: Principal) -> dict[str, Entry]:
        wanted = {token for text in texts for token in tokens.in_text(text)}
        wanted = {token for token in wanted if tokens.kind_of(token) in self._kinds}
        if not wanted:
            return {}
        conversation = self._of(principal)
        found = {token: conversation.entry_of(token) for token in wanted}
        missing = [token for token, entry in found.items() if entry is None]
        if missing:
            found |= await self._vaults.entries(principal, missing)
        return {token: entry for token, entry in found.items() if entry is not None}

    async def reveal(self, text: str, principal: Principal) -> tuple[str, int]:
        entries = await self._entries([text], principal)
        return tokens.replaced(text, lambda token: _value(entries, token)), len(entries)

    # Outward

    async def outward(
        self, value: Value, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Value:
        conversation = self._of(principal)
        if reader == "model" and self._is_personal:
            value = _without_binary(value)
        if reader == "model" and isinstance(value, Event | Result | CommandResult):
            await _learn_shown(conversation, _shown_in(value))
        leaves = Leaves(value)

        def changed() -> list[str]:
            if reader == "sandbox":
                return self._entering(conversation, value, leaves.texts, origin)
            return conversation.tokenised_all(leaves.texts)

        texts = await _beside(changed, sum(map(len, leaves.texts)))
        return value if texts == leaves.texts else leaves.replaced(texts)

    def _entering(
        self, conversation: Conversation, value: Any, texts: list[str], origin: str
    ) -> list[str]:
        """The texts of a result as code gets them. What is known of it now is found again later."""
        server = origin.partition(".")[0]
        conversation.learner.learn(value, origin)
        if self._rules.border_of(origin) == "sandbox":
            return conversation.tokenised_all(texts, server, sealed=True)
        conversation.note_origins(self._secrets, texts, server)
        return conversation.defused_all(texts)

    def text(self, text: str, principal: Principal, *, goes_on: bool = False) -> str:
        conversation = self._of(principal)
        if not goes_on:
            return conversation.tokenised(text)
        pieces = conversation.pieces()
        return pieces.feed(text) + pieces.feed("")

    def passage(self, principal: Principal) -> Passage:
        return PrivacyPassage(self, principal, self._of(principal))

    def note(self, principal: Principal) -> str:
        example = self._of(principal).example()
        return NOTE.format(what=WHAT[self._is_personal], token=example) if example else ""

    def reading(self, name: str, principal: Principal) -> Reading:
        return FileReading(name, self._of(principal).learner)

    def holds_back(self, principal: Principal) -> bool:
        return self._is_personal

    def join(self, client: Principal, session: Principal) -> None:
        first, second = self._of(client), self._of(session)
        first.join(second)
        second.join(first)

    def _of(self, principal: Principal) -> Conversation:
        key = (principal.user, principal.conversation)
        found = self._conversations.get(key)
        if found is None:
            vault = self._vaults.of(principal)
            found = Conversation(vault, self._scanner, self._fields, self._kinds)
            self._conversations[key] = found
            if len(self._conversations) > MOST_CONVERSATIONS:
                self._conversations.popitem(last=False)
        self._conversations.move_to_end(key)
        return found


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
        await weight.in_thread(lambda: self._learner.learn_file(self._name, data))


class PrivacyPassage:
    """The way out for the events of one run."""

    def __init__(
        self, border: PrivacyBorder, principal: Principal, conversation: Conversation
    ) -> None:
        self._border = border
        self._principal = principal
        self._conversation = conversation
        self._pieces: dict[str, PieceScreen] = {}
        self._last: dict[str, Any] = {}

    async def event(self, event: Shown) -> Iterable[Shown]:
        if event.type in _CUT:
            pieces = self._pieces.setdefault(event.type, self._conversation.pieces())
            self._last[event.type] = event
            await _learn_shown(self._conversation, [event.text])
            shown = await _beside(lambda: pieces.feed(event.text), len(event.text))
            return [dataclasses.replace(event, text=shown)] if shown else []
        passed = await self._border.outward(event, self._principal)
        if event.type in ("progress", "log", "notice"):
            return [passed]
        return [*await self.end(), passed]

    async def end(self) -> Iterable[Any]:
        left, self._pieces = self._pieces, {}
        rest = [(name, await _beside(pieces.end, LONG)) for name, pieces in left.items()]
        return [dataclasses.replace(self._last[name], text=text) for name, text in rest if text]


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


def _without_binary(value: Any) -> Any:
    """Hold back what can't be looked through."""
    if isinstance(value, Event | Result) and value.outputs:
        return dataclasses.replace(value, outputs=tuple(map(_looked_through, value.outputs)))
    return value


def _looked_through(output: Output) -> Output:
    if isinstance(output.data, str) and output.type != _DRAWN:
        return output
    words = f"[{output.type} of {len(output.data):,} bytes is held back: {HELD_BACK}]"
    return Output("text/plain", words, output.name, output.cell)


def _value(entries: Mapping[str, Entry], token: str) -> str:
    entry = entries.get(token)
    return token if entry is None else entry.value


def _kept_secret(entry: Entry, to: str) -> str:
    whose = " and ".join(sorted(entry.origins)) or "no server"
    return (
        f"{entry.token} stands for a secret that came from {whose}, and is sent nowhere else: not "
        f"to {to}"
    )


async def _beside(work: Callable[[], Made], size: int) -> Made:
    return work() if size <= LONG else await weight.in_thread(work)
