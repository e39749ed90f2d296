"""Asks a person before a call is made.

Whoever can't be asked, does not answer in time or answers something else has said no. A yes is
for one call; "always" is for the like (the same tool in the same definition, by the same rule)
until the run ends, "session" until the session does.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args

from divingbell import logs
from divingbell.errors import ToolFailed
from divingbell.journal.events import ApprovalAnswered, ApprovalAsked
from divingbell.journal.journal import Journal
from divingbell.text import one_line

log = logs.logger("divingbell.gateway")

Word = Literal["yes", "no", "always", "session"]
WORDS: tuple[Word, ...] = get_args(Word)
MAX_COMMENT = 500
MAX_OPEN = 20
"""Questions of one session that wait for an answer. Calls that are alike are one question."""
_numbers = itertools.count(1)
NOBODY_TO_ASK = (
    "tell the person, and do not try again. Whoever runs Divingbell can add a rule, use a client "
    "that can ask, or set on_approval"
)


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person is asked: may this call be made?"""

    tool: str
    """`server.tool`."""
    arguments: str = ""
    """The arguments, one a line: see `divingbell.gateway.policy.preview`."""
    reason: str = ""
    """Why it is asked: the reason of the rule, whose data may be in it where a flow rule asks, or
    that the tool's definition has changed."""
    session: str = ""
    """The id of the session that the call comes from: `bell.get(session, user=user)`."""
    key: str = ""
    """The key of that session, which no other has: of no other user, and no later one of its id."""
    user: str | None = None
    """The user whose session it is; None where nobody was named."""
    run: int = 0
    """The cell that the call belongs to; 0 between cells."""
    rule: int | None = None
    flows: tuple[int, ...] = field(default=(), kw_only=True)
    """The numbers of the rules about flows because of which it is asked."""
    definition: str = ""
    """The hash of the tool's definition: a yes does not outlive it."""
    waiting: int = 0
    """How many calls of the same kind wait for this answer too."""
    values: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The arguments as data, whole: a copy that can't be changed. Secrets are in it as well."""
    identifier: int = field(default_factory=lambda: next(_numbers))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said."""

    word: Word
    """yes, no, always (the like in this run) or session (the like in this session)."""
    comment: str = ""


Approver = Callable[[Approval], Awaitable[bool | str | Answer]]
"""Asks one person. It may return True, False, a word of an Answer, or an Answer."""


class NobodyThere(Exception):
    """Raised by an Approver that has nobody to ask; its text says why."""


@dataclass(frozen=True, slots=True)
class FirstOf:
    """An Approver that asks several at the same time: the first answer counts."""

    approvers: tuple[Approver, ...]

    async def __call__(self, approval: Approval) -> bool | str | Answer:
        asking = [asyncio.ensure_future(each(approval)) for each in self.approvers]
        why: BaseException | None = None
        try:
            for next_answer in asyncio.as_completed(asking):
                try:
                    return await next_answer
                except NobodyThere as error:
                    why = why or error
            raise why or NobodyThere(NOBODY_TO_ASK)
        finally:
            for each in asking:
                each.cancel()
            await asyncio.wait(asking)


Kind = tuple[str, str, int | None, tuple[int, ...], str]
"""Key of the session, tool, rule, rules about flows and definition: calls that are alike."""


class _Turn:
    """A queue that exists while somebody stands in it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0
        self.refusals = 0
        self.refusal: ToolFailed | None = None


class Remembered(Protocol):
    """The answers that hold for all of a session, where several processes serve that one."""

    async def holds(self, kind: Kind) -> bool:
        """Whether a yes to this kind was given for the session.

        Raises:
            ToolFailed: it can't be said.
        """

    async def take(self, kind: Kind) -> None:
        """Remember a yes.

        Raises:
            ToolFailed: it can't be remembered.
        """


class _Given:
    """The answers of a session that hold for more than one call."""

    def __init__(self, elsewhere: Remembered | None) -> None:
        self.run: set[tuple[int, Kind]] = set()
        self.session: set[Kind] = set()
        self._elsewhere = elsewhere

    def is_known(self, kind: Kind, run: int) -> bool:
        return kind in self.session or (run, kind) in self.run

    async def holds(self, kind: Kind, run: int) -> bool:
        if self.is_known(kind, run):
            return True
        if self._elsewhere is not None and await self._elsewhere.holds(kind):
            self.session.add(kind)
        return kind in self.session

    async def take(self, kind: Kind, run: int, word: Word) -> None:
        if word == "always" and run:  # between cells there is no run that it could be for
            self.run.add((run, kind))
        elif word == "session":
            if self._elsewhere is not None:
                await self._elsewhere.take(kind)
            self.session.add(kind)


class Approvals:
    """Asks, remembers what holds for more than one call, and has one question of a cell open.

    The questions of one cell to an approver come one after the other. Those of other cells do not
    wait for them: else whoever leaves a question open would hold up everybody's calls. An approver
    that can put only one at a time, as on a terminal, sees to that itself.
    """

    def __init__(
        self, timeout: float, journal: Journal, remembered: Remembered | None = None
    ) -> None:
        self._timeout = timeout
        self._remembered = remembered
        self._journal = journal
        self._kinds: dict[Kind, _Turn] = {}
        self._lines: dict[tuple[Hashable, str, int], _Turn] = {}
        """By approver, session and cell."""
        self._given: dict[str, _Given] = {}

    async def ask(self, approval: Approval, approver: Approver | None) -> Answer:
        """Return the yes for a call: given now, or before for its like.

        Calls that are alike wait for each other. A yes to all lets all go that wait, a no (or no
        answer) refuses them all: nobody is asked a hundred times by a loop. After a plain yes the
        next one is asked about.

        Raises:
            ToolFailed: the person said no, or nobody could be asked.
        """
        why = (approval.rule, approval.flows, approval.definition)
        kind = (approval.key, approval.tool, *why)
        # Taken now: what is answered after the session has ended holds for no other.
        given = self._given.setdefault(approval.key, _Given(self._remembered))
        if kind not in self._kinds and not given.is_known(kind, approval.run):
            self._check_room(approval)
        turn = self._kinds.setdefault(kind, _Turn())
        refusals = turn.refusals
        turn.waiting += 1
        try:
            async with turn.lock:
                if await given.holds(kind, approval.run):
                    return Answer("always")
                if turn.refusal is not None and turn.refusals > refusals:
                    raise ToolFailed(str(turn.refusal), turn.refusal.code)
                try:
                    answer = await self._queue(approval, approver, turn)
                except ToolFailed as refusal:
                    turn.refusals, turn.refusal = turn.refusals + 1, refusal
                    raise
                await given.take(kind, approval.run, answer.word)
                return answer
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                self._kinds.pop(kind, None)

    def end_run(self, key: str) -> None:
        """Forget what was said for a run that has ended, in the session of this key."""
        if key in self._given:
            self._given[key].run.clear()

    def forget(self, key: str) -> None:
        """Forget a session that has ended."""
        self._given.pop(key, None)

    def _check_room(self, approval: Approval) -> None:
        if sum(key == approval.key for key, *_ in self._kinds) >= MAX_OPEN:
            raise ToolFailed(
                f"{approval.tool} needs approval, and {MAX_OPEN} questions of this session wait "
                "for an answer already: wait for those calls first",
                "tool_denied",
            )

    async def _queue(self, approval: Approval, approver: Approver | None, turn: _Turn) -> Answer:
        if approver is None:
            raise _nobody(approval, NOBODY_TO_ASK)
        # Not by identity: a bound method is another object each time it is looked up.
        asked = approver if isinstance(approver, Hashable) else id(approver)
        key = (asked, approval.key, approval.run)
        line = self._lines.setdefault(key, _Turn())
        line.waiting += 1
        try:
            async with line.lock:
                # Counted now: more may have come while another question was open.
                return await self._noted(replace(approval, waiting=turn.waiting - 1), approver)
        finally:
            line.waiting -= 1
            if not line.waiting:
                self._lines.pop(key, None)

    async def _noted(self, approval: Approval, approver: Approver) -> Answer:
        whose = (approval.user or "", approval.key, approval.run)
        what = (approval.identifier, approval.tool, *whose)
        self._journal.note(ApprovalAsked(*what, approval.arguments))
        word, comment = "nobody", ""
        try:
            answer = await self._put(approval, approver)
            word, comment = answer.word, answer.comment
        finally:
            self._journal.note(ApprovalAnswered(*what, word, comment))
        if word == "no":
            words = f": {comment}" if comment else ""
            raise ToolFailed(
                f"{approval.tool} was denied by the person who was asked{words}", "tool_denied"
            )
        return answer

    async def _put(self, approval: Approval, approver: Approver) -> Answer:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                said = await approver(approval)
        except NobodyThere as error:
            raise _nobody(approval, str(error)) from None
        except TimeoutError:
            if limit.expired():
                raise _nobody(approval, f"no answer came in {self._timeout:g} s") from None
            raise _nobody(approval, "the question could not be put") from None
        except Exception as error:
            # The error may tell what the code is not to know.
            log.warning("asking about %s failed", approval.tool, exc_info=error)
            raise _nobody(approval, f"the question failed with {type(error).__name__}") from None
        answer = _understood(said)
        if answer is None:
            log.warning("the answer about %s was not understood", approval.tool)
            raise _nobody(approval, "the answer was not understood")
        return answer


def _nobody(approval: Approval, why: str) -> ToolFailed:
    reason = f" ({one_line(approval.reason, MAX_COMMENT)})" if approval.reason else ""
    return ToolFailed(f"{approval.tool} needs approval{reason} and has none: {why}", "tool_denied")


def _understood(said: object) -> Answer | None:
    if isinstance(said, bool):
        return Answer("yes" if said else "no")
    answer = said if isinstance(said, Answer) else None
    text: object = said if answer is None else answer.word
    for word in WORDS:
        if isinstance(text, str) and text == word:
            return Answer(word, one_line(str(answer.comment if answer else ""), MAX_COMMENT))
    return None
