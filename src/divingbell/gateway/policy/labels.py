"""Labels of conversations: which rules about flows each has set off, and by which call.

A conversation gets the label of a call before that leaves, whatever comes back, and for good: code
can keep what it got in variables, files, threads and calls under way, and nothing of that takes a
label away. Of a label that no rule is about nothing is kept, so a conversation has at most one line
for each rule.

Labels are held by sessions, and by clients. Those that can reach the same session are one
conversation from then on. They have nothing to do with the labels that a session is opened with.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from divingbell import logs
from divingbell.gateway.context import CallContext, Holder
from divingbell.principal import Principal
from divingbell.settings.flows import Flow

log = logs.logger("divingbell.gateway")

MAX_HOLDERS = 10_000
"""Holders of one user that are told apart; those beyond share their labels. Some clients go without
a word, and nothing is forgotten of one that may come back."""
MAX_KNOWN = 20_000
"""Pairs of a tool and a user whose rules are remembered; then all are found anew."""


@dataclass(frozen=True, slots=True)
class Source:
    """The call that has set off a rule."""

    tool: str
    """`server.tool`."""
    cell: int = 0
    """The cell that made it; 0 where none did."""

    def __str__(self) -> str:
        return f"{self.tool} (called in cell {self.cell})" if self.cell else self.tool


@dataclass(frozen=True, slots=True)
class FlowMatch:
    """A rule about flows that holds a call back."""

    number: int
    """The number of the rule, counted from 1."""
    flow: Flow
    source: Source
    token: str = ""
    """The value in the arguments that it is about, where it is a rule about kinds of values."""


class Ends(NamedTuple):
    """The rules that a tool sets off, and those that hold it back."""

    starting: tuple[int, ...]
    leading: tuple[tuple[int, Flow], ...]


class FlowEnds:
    """Says which rules are about a tool and a user. Each pair is found once: calls are many.

    `flows` have the numbers that they are known by.
    """

    def __init__(self, flows: Iterable[tuple[int, Flow]]) -> None:
        self._flows = tuple(flows)
        self._known: dict[tuple[str, str], Ends] = {}

    def __bool__(self) -> bool:
        return bool(self._flows)

    def __len__(self) -> int:
        """The number of pairs that are remembered."""
        return len(self._known)

    def of(self, tool: str, user: str) -> Ends:
        """Return the rules that a tool sets off, and those that hold it back."""
        found = self._known.get((tool, user))
        if found is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            flows = [(number, flow) for number, flow in self._flows if flow.is_for(user)]
            found = self._known[tool, user] = Ends(
                tuple(number for number, flow in flows if flow.starts_at(tool)),
                tuple((number, flow) for number, flow in flows if flow.leads_to(tool)),
            )
        return found


class Labelled(NamedTuple):
    """The labels of a conversation, as they are told to other processes."""

    user: str
    holders: tuple[Holder, ...]
    """None: of those of the user that are not told apart."""
    sources: tuple[Source, ...]


class SharedLabels(Protocol):
    """The others who serve the same conversations, and have all labels, too."""

    def tell(self, labelled: Labelled) -> None:
        """Tell them of labels, or of holders that are one conversation."""

    def leave(self, connection: str) -> None:
        """Tell them that the clients of a connection have gone."""

    async def settled(self, user: str) -> None:
        """Return when all of them know what they were told of a user's conversations.

        Raises:
            ToolFailed: that can't be said.
        """


class _Conversation:
    """Holders that share their labels. They are of one user."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.holders: set[Holder] = set()
        self.sources: dict[int, Source] = {}
        """For each rule that was set off, by its number, the first call that has done it."""


class Labels:
    """Keeps the labels of all conversations, and says which rules hold a call back."""

    def __init__(self, flows: Sequence[Flow], others: SharedLabels | None = None) -> None:
        """With `others` a session that ends here keeps its labels until they say that it has ended:
        it may go on there."""
        self._others = others
        numbered = enumerate(flows, 1)
        self._ends = FlowEnds((number, flow) for number, flow in numbered if not flow.kinds)
        self._conversations: dict[Holder, _Conversation] = {}
        self._counts: Counter[str] = Counter()
        """Holders of each user."""
        self._shared: dict[str, _Conversation] = {}
        """Of users who have had too many: the labels of those that are not told apart, and of all
        that come later, because nobody knows whether they were here before."""

    def __len__(self) -> int:
        """The number of holders."""
        return len(self._conversations)

    def add(self, holder: Holder, user: str, source: Source) -> None:
        """Give a conversation the label of a call. This comes before the call leaves: another one
        at the same time must find it there."""
        if not self._ends or not (numbers := self._ends.of(source.tool, user).starting):
            return
        conversation = self._conversation(holder, user)
        if conversation.sources.keys() >= set(numbers):
            return
        for number in numbers:
            conversation.sources.setdefault(number, source)
        if self._others is not None:
            self._others.tell(Labelled(user, (holder,), (source,)))

    async def settled(self, user: str) -> None:
        """Return when all others who serve a user's conversations know of the labels given here.

        Raises:
            ToolFailed: that can't be said.
        """
        if self._others is not None:
            await self._others.settled(user)

    def take(self, labelled: Labelled) -> None:
        """Take labels, or holders that are one conversation, of which others have told."""
        user, holders, sources = labelled
        for holder in holders[1:]:
            self._unite(holders[0], holder, user)
        conversation = self._conversation(holders[0], user) if holders else self._common(user)
        for source in sources:
            for number in self._ends.of(source.tool, user).starting:
                conversation.sources.setdefault(number, source)

    def state(self) -> list[Labelled]:
        """Return all labels, and which holders are one conversation."""
        conversations = {id(each): each for each in self._conversations.values()}
        found = [(each, tuple(each.holders)) for each in conversations.values()]
        found += [(each, ()) for each in self._shared.values()]
        return [
            Labelled(each.user, holders, tuple(each.sources.values()))
            for each, holders in found
            if each.sources or len(holders) > 1
        ]

    def matches(self, context: CallContext, tool: str) -> tuple[FlowMatch, ...]:
        """Return the rules that hold a call of `server.tool` back; those that deny come first."""
        user = context.user
        if not self._ends or not (flows := self._ends.of(tool, user).leading):
            return ()
        conversation = self._conversations.get(context.holder) or self._shared.get(user)
        if conversation is None:
            return ()
        sources = conversation.sources
        found = [
            FlowMatch(number, flow, sources[number]) for number, flow in flows if number in sources
        ]
        return in_order(found)

    def sources(self, holder: Holder, user: str) -> tuple[str, ...]:
        """Return the tools whose data a conversation has, as far as there are rules about them."""
        conversation = self._conversations.get(holder) or self._shared.get(user)
        found = () if conversation is None else conversation.sources.values()
        return tuple(sorted({source.tool for source in found}))

    def join(self, client: Principal, session: str) -> None:
        """Make a client and the session with this key, which it can reach, one conversation."""
        if self._ends and self._unite(session, client, client.user) and self._others is not None:
            self._others.tell(Labelled(client.user, (client, session), ()))

    def _unite(self, one: Holder, other: Holder, user: str) -> bool:
        """Make two holders one conversation; return whether they were two."""
        shared = self._shared
        both = (self._conversation(one, user), self._conversation(other, user))
        if both[0] is both[1]:
            return False
        gone, kept = sorted(both, key=lambda each: (each is shared.get(user), len(each.holders)))
        kept.sources = gone.sources | kept.sources
        kept.holders |= gone.holders
        self._conversations |= dict.fromkeys(gone.holders, kept)
        return True

    def forget(self, holder: Holder) -> None:
        """Forget a session or a client that has ended. The others of its conversation stay."""
        if self._others is None or not isinstance(holder, str):
            self.drop(holder)

    def drop(self, holder: Holder) -> None:
        """Forget a session or a client that has ended everywhere."""
        conversation = self._conversations.pop(holder, None)
        if conversation is not None:
            conversation.holders.discard(holder)
            self._counts[conversation.user] -= 1
            if not self._counts[conversation.user]:
                del self._counts[conversation.user]

    def leave(self, connection: str) -> None:
        """Forget the clients of a connection that has ended."""
        if self._others is not None:
            self._others.leave(connection)
        self.drop_connection(connection)

    def drop_connection(self, connection: str) -> None:
        """Forget the clients of a connection, of whose end others have told."""
        for holder in list(self._conversations):
            if isinstance(holder, Principal) and holder.conversation == connection:
                self.drop(holder)

    def _conversation(self, holder: Holder, user: str) -> _Conversation:
        found = self._conversations.get(holder) or self._shared.get(user)
        if found is not None:
            return found
        if self._counts[user] >= MAX_HOLDERS:
            log.warning("user %r has %d conversations: more share their labels", user, MAX_HOLDERS)
            return self._common(user)
        made = self._conversations[holder] = _Conversation(user)
        made.holders.add(holder)
        self._counts[user] += 1
        return made

    def _common(self, user: str) -> _Conversation:
        """Return the conversation of those of a user that are not told apart."""
        return self._shared.setdefault(user, _Conversation(user))


def in_order(matches: Iterable[FlowMatch]) -> tuple[FlowMatch, ...]:
    """Return rules that hold a call back, those that deny first."""
    return tuple(sorted(matches, key=lambda match: match.flow.action != "deny"))
