"""Conversations of the product's own agent with a model, and the tokens that the model reads.

Everything is real but the model: prompt, definitions, session, gateway, servers. Tokens are those
of the requests that were made, by the product's counter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

from divingbell import Divingbell
from divingbell.agent.agent import Agent
from divingbell.agent.context import tokens_of_entry
from divingbell.agent.events import Done, UsageTold
from divingbell.agent.history import Entry
from divingbell.agent.model import ModelRequest
from divingbell.agent.modes import Mode
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says, ScriptedModel

WINDOW = 10_000_000
"""Tokens: more than any model has, so that nothing is shortened where definitions are large."""
CACHED = 0.1
"""What a token costs that a provider has cached, beside one that it has not."""

Script = Callable[[ModelRequest], Says]


@dataclass(frozen=True, slots=True)
class Cost:
    """What a model has read in one conversation."""

    requests: tuple[int, ...]
    """Tokens of each request."""
    besides: int
    """Tokens of instructions and definitions, which each request begins with."""
    answer: str
    """The last words of the model."""

    @property
    def turns(self) -> int:
        return len(self.requests)

    @property
    def read(self) -> int:
        """All tokens of all requests."""
        return sum(self.requests)

    @property
    def peak(self) -> int:
        return max(self.requests)

    @property
    def with_cache(self) -> float:
        """The same where the beginning that a request shares with the one before costs a tenth.

        Instructions and definitions are taken to be cached already, by earlier conversations.
        """
        cached = (self.besides, *self.requests[:-1])
        return sum(
            read - (1 - CACHED) * known for read, known in zip(self.requests, cached, strict=True)
        )


async def converse(bell: Divingbell, script: Script, mode: Mode, words: Sequence[str]) -> Cost:
    """Say these things to an agent, one after the other, with a script in the place of the model.

    Raises:
        RuntimeError: an answer ended at a limit.
    """
    model = ScriptedModel(repeat(script), window=WINDOW)
    async with bell.session() as session:
        agent = await open_agent(bell, session, model, mode=mode)
        read: list[int] = []
        for each in words:
            sizes, answer = await ask(agent, each)
            read += sizes
    sent = [request.entries for request in model.requests]
    _check_beginnings(sent)
    first = sum([await tokens_of_entry(entry) for entry in sent[0]])
    return Cost(tuple(read), read[0] - first, answer)


async def ask(agent: Agent, words: str) -> tuple[list[int], str]:
    """Say something; return the tokens of each request until the answer, and the answer.

    Raises:
        RuntimeError: it ended at a limit.
    """
    read = []
    async for event in agent.ask(words):
        if isinstance(event, UsageTold):
            read.append(event.usage.input_tokens)
        elif isinstance(event, Done):
            if event.reason != "answered":
                raise RuntimeError(f"the answer ended by {event.reason}: {event.text}")
            return read, event.text
    raise AssertionError("the last event is Done")


def _check_beginnings(sent: Sequence[Sequence[Entry]]) -> None:
    """Make sure that each request begins with the one before, as caches need it."""
    for before, after in pairwise(sent):
        if tuple(after[: len(before)]) != tuple(before):
            raise RuntimeError("a request does not begin with the one before")
