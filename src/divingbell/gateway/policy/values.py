"""Values in arguments: which rules about kinds of values hold a call back.

Such a rule does not look at the conversation, but at what is put into the arguments for tokens:
each of those is known by its kind and by the tools that it came from.
"""

from collections.abc import Iterable, Iterator, Sequence

from divingbell.border.border import Restored
from divingbell.gateway.policy.labels import FlowEnds, FlowMatch, Source, in_order
from divingbell.settings.flows import Flow


class ValueFlows:
    """Says which rules hold a call back because of values in its arguments."""

    def __init__(self, flows: Sequence[Flow]) -> None:
        self._ends = FlowEnds((number, flow) for number, flow in enumerate(flows, 1) if flow.kinds)

    def __bool__(self) -> bool:
        return bool(self._ends)

    def matches(self, user: str, tool: str, restored: Iterable[Restored]) -> tuple[FlowMatch, ...]:
        """Return the rules that hold a call of `server.tool` back, each with the first value that
        it is about; those that deny come first."""
        if not self._ends or not (flows := self._ends.of(tool, user).leading):
            return ()
        # A call may have ten thousand values in it, which come from few places.
        alike = {(value.kind, value.origins): value for value in reversed([*restored])}
        found: dict[int, FlowMatch] = {}
        for value in reversed(alike.values()):
            for match in self._held(value, flows, user):
                found.setdefault(match.number, match)
        return in_order(found[number] for number in sorted(found))

    def _held(
        self, value: Restored, flows: Iterable[tuple[int, Flow]], user: str
    ) -> Iterator[FlowMatch]:
        about = {number: flow for number, flow in flows if flow.is_about(value.kind)}
        for origin in sorted(value.origins) if about else ():
            for number in self._ends.of(origin, user).starting:
                if number in about:
                    yield FlowMatch(number, about[number], Source(origin), value.token)
