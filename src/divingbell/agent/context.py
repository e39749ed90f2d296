"""The part of a conversation that a model is sent, within the tokens that it can read.

What was sent stays as it is, because caches of providers hold only the same beginning. So nothing
is taken away bit by bit: past a share of the budget the old outputs become one line each, all in
one step, and then there is room for a while.
"""

from dataclasses import replace

from divingbell.agent.history import OUTPUT, Answered, Asked, Entry, Replied, is_output
from divingbell.escapes import one_line
from divingbell.journal import tokens
from divingbell.models import IMAGE_TOKENS

FULL, ROOMY = 0.7, 0.4
"""Shares of the budget: past the first old outputs become short, until the second is reached."""
DEFAULT_BUDGET = 128_000
"""Tokens, for a model whose window is not known."""
SHORT = 100
"""Characters of an output that has become one line."""
FAR_BELOW = 0.5
"""A provider that counts less than this share of what we count has not read all of it."""
WORTH_TELLING = 2_000
"""Tokens below which that is not looked at: providers differ in what they add."""


class Context:
    """The entries of a conversation, and what they cost."""

    def __init__(self, budget: int | None) -> None:
        self._budget = budget or DEFAULT_BUDGET
        self._counted: dict[int, tuple[Entry, int]] = {}

    async def tokens_of(self, entries: list[Entry]) -> int:
        """Return what the entries cost a model that reads them."""
        known = self._counted
        self._counted = {}
        total = 0
        for entry in entries:
            found = known.get(id(entry))
            if found is None or found[0] is not entry:
                found = (entry, await tokens_of_entry(entry))
            self._counted[id(entry)] = found
            total += found[1]
        return total

    async def fit(self, entries: list[Entry], besides: int) -> int:
        """Make old outputs short where the budget is nearly used up.

        `besides` is what else is sent.

        Returns:
            How many outputs have become short.
        """
        total = await self.tokens_of(entries) + besides
        if total <= self._budget * FULL:
            return 0
        shortened = 0
        for place in _old_outputs(entries):
            if total <= self._budget * ROOMY:
                break
            before = entries[place]
            assert is_output(before)
            cost = self._counted[id(before)][1]
            entries[place] = after = _shortened(before, cost)
            total += await tokens_of_entry(after) - cost
            shortened += 1
        return shortened


def was_cut(ours: int, theirs: int) -> bool:
    """Whether a provider counts so much less than we do that it can't have read all."""
    return ours >= WORTH_TELLING and 0 < theirs < ours * FAR_BELOW


def _old_outputs(entries: list[Entry]) -> list[int]:
    """Return the places of outputs that can become short, the oldest first: all that the model has
    replied to already."""
    last_reply = max(
        (place for place, entry in enumerate(entries) if isinstance(entry, Replied)), default=0
    )
    return [
        place
        for place, entry in enumerate(entries[:last_reply])
        if is_output(entry) and (len(entry.text) > 2 * SHORT or entry.images)
    ]


def _shortened(entry: Asked | Answered, cost: int) -> Asked | Answered:
    head = OUTPUT if isinstance(entry, Asked) else ""  # by which it is known as output
    start = one_line(entry.text.removeprefix(head)[: 2 * SHORT])[:SHORT]
    text = f"{start} [… {cost:,} tokens of output, no longer shown: run it again if you need it]"
    return replace(entry, text=head + text, images=())


async def tokens_of_entry(entry: Entry) -> int:
    """Return what an entry costs a model that reads it, the calls that it wrote included."""
    texts = [entry.text]
    if isinstance(entry, Replied):
        texts += [call.arguments for call in entry.calls]
    total = 0
    for text in texts:
        total += (await tokens.count_later(text)).tokens
    return total + IMAGE_TOKENS * len(getattr(entry, "images", ()))
