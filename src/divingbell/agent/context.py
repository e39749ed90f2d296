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


class Besides:
    """What is sent besides the conversation. It is the same in each request, so its tokens are
    counted once: those of two thousand definitions take more than a second."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: int | None = None
        self.most = _most_tokens(text)

    async def tokens(self) -> int:
        if self._tokens is None:
            self._tokens = (await tokens.count_later(self._text)).tokens
            self._text = ""
        return self._tokens


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

    async def fit(self, entries: list[Entry], besides: Besides) -> int:
        """Make old outputs short where the budget is nearly used up.

        Returns:
            How many outputs have become short.
        """
        if besides.most + sum(map(_most_of_entry, entries)) <= self._budget * FULL:
            return 0  # nothing is counted: the tokenizer takes a quarter of a second to load
        total = await self.tokens_of(entries) + await besides.tokens()
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
    total = _tokens_of_images(entry)
    for text in _texts_of(entry):
        total += (await tokens.count_later(text)).tokens
    return total


def _texts_of(entry: Entry) -> list[str]:
    calls = entry.calls if isinstance(entry, Replied) else ()
    return [entry.text, *(call.arguments for call in calls)]


def _tokens_of_images(entry: Entry) -> int:
    return IMAGE_TOKENS * len(getattr(entry, "images", ()))


def _most_of_entry(entry: Entry) -> int:
    return _tokens_of_images(entry) + sum(map(_most_tokens, _texts_of(entry)))


def _most_tokens(text: str) -> int:
    """Return how many tokens a text has at most: each has a byte at least."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
