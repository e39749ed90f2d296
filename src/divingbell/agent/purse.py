"""The purse of an agent: what an answer has cost, and what it may still cost.

Helpers get their part before they begin, so that several at once can't spend the same tokens. What
they have not used comes back when they end.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from divingbell.agent.events import StopReason
from divingbell.agent.limits import AgentLimits
from divingbell.agent.model import ModelUsage

PART = 4
"""A helper that asks for no certain amount gets one part in so many of what is left."""
HELPER_TOKENS = 200_000
"""Tokens that it gets where its parent has no limit."""


class NotEnough(Exception):
    """Raised where more is asked for than is left; the text says how much that is."""


@dataclass(slots=True)
class Part:
    """The part of a purse that a helper has."""

    tokens: int
    money: float | None
    used: ModelUsage = field(default_factory=ModelUsage)

    @property
    def tokens_left(self) -> int:
        return max(self.tokens - self.used.input_tokens - self.used.output_tokens, 0)

    @property
    def money_left(self) -> float:
        return max((self.money or 0.0) - (self.used.cost or 0.0), 0.0)


class Purse:
    """The tokens and the money of one agent."""

    def __init__(self, limits: AgentLimits) -> None:
        self._limits = limits
        self.answer = ModelUsage()
        """The cost of the answer that is being made, helpers included."""
        self.total = ModelUsage()
        """The cost of all answers together."""
        self._parts: list[Part] = []
        """Those that helpers have now."""

    def begin(self) -> None:
        """Take it that another answer begins."""
        self.answer = ModelUsage()

    def spend(self, usage: ModelUsage) -> None:
        """Count what a request has cost."""
        self.answer += usage
        self.total += usage

    @property
    def used_up(self) -> StopReason | None:
        """The limit that is reached, if one is."""
        if self._limits.tokens is not None and self._tokens_used >= self._limits.tokens:
            return "tokens"
        if self._limits.money is not None and self.answer.cost is not None:
            return "money" if self.answer.cost >= self._limits.money else None
        return None

    @property
    def _tokens_used(self) -> int:
        return self.answer.input_tokens + self.answer.output_tokens

    @contextmanager
    def part(self, tokens: int | None) -> Iterator[Part]:
        """Take a part for a helper, until the block ends.

        Raises:
            NotEnough: there is not so much left.
        """
        taken = Part(self._tokens_for(tokens), self._money_for())
        self._parts.append(taken)
        try:
            yield taken
        finally:
            self._parts = [each for each in self._parts if each is not taken]

    def spend_part(self, part: Part, usage: ModelUsage) -> None:
        """Count what a helper's request has cost."""
        part.used += usage
        self.spend(usage)

    def _tokens_for(self, asked: int | None) -> int:
        if self._limits.tokens is None:
            return asked or HELPER_TOKENS
        taken = sum(part.tokens_left for part in self._parts)
        left = self._limits.tokens - self._tokens_used - taken
        wanted = asked or left // PART
        if wanted > left or wanted < 1:
            words = f"{max(left, 0):,} tokens are left for this answer"
            raise NotEnough(f"{words}, not {wanted:,}: ask for less" if asked else words)
        return wanted

    def _money_for(self) -> float | None:
        if self._limits.money is None:
            return None
        taken = sum(part.money_left for part in self._parts)
        left = self._limits.money - (self.answer.cost or 0.0) - taken
        if left <= 0:
            raise NotEnough("no money is left for this answer")
        return left / PART
