"""What of a conversation a model is sent, by the tokens that it can read."""

import pytest

from divingbell.agent.context import FULL, ROOMY, Besides, Context
from divingbell.agent.history import Answered, Asked, Call, Entry, Replied
from divingbell.journal import tokens

pytestmark = pytest.mark.anyio
BUDGET = 10_000


def exchange(number: int) -> list[Entry]:
    call = Call(f"call_{number}", "execute_python", '{"code": "look()"}')
    return [Replied(calls=(call,)), Answered(call, "word " * 500)]


async def test_past_70_per_cent_old_outputs_become_one_line_down_to_40_per_cent() -> None:
    context, besides = Context(BUDGET), Besides("You are tested. " * 50)
    entries: list[Entry] = [Asked("go")]
    shortened = number = 0
    while not shortened:
        number += 1
        entries += exchange(number)
        before = list(entries)
        shortened = await context.fit(entries, besides)
        if not shortened:
            assert entries == before, "nothing is taken away bit by bit"
    sent = await besides.tokens()
    assert await Context(None).tokens_of(before) + sent > BUDGET * FULL
    assert await Context(None).tokens_of(before[:-2]) + sent <= BUDGET * FULL
    after = await context.tokens_of(entries) + sent
    assert BUDGET * ROOMY - 600 < after <= BUDGET * ROOMY, "and no output more than is needed"
    outputs = [entry.text for entry in entries if isinstance(entry, Answered)]
    short = [text for text in outputs if "no longer shown" in text]
    assert short == outputs[:shortened] and all("\n" not in text for text in short)


async def test_what_surely_fits_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []

    async def count_later(text: str) -> tokens.Count:
        counted.append(text)
        return tokens.measure(text)

    monkeypatch.setattr(tokens, "count_later", count_later)
    context, besides = Context(BUDGET), Besides("x" * 3_000)
    entries: list[Entry] = [Asked("é" * 2_000)]
    assert not await context.fit(entries, besides) and not counted
    entries.append(Asked("y"))
    assert not await context.fit(entries, besides) and len(counted) == 3
