"""How long: a first result, a first pandas result, a warm round trip. Peers take turns."""

import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import table
from peers import PANDAS, PLAIN, HastyKernel, Kernel, OnDemand, Peer, Pooled, Task, everyone
from turns import Turns

Times = dict[str, list[float]]
BATCH = 20
"""Warm round trips in a row before it is the next one's turn."""
PANDAS_ON_DEMAND = 60.0
PANDAS_FROM_POOL = 300.0
WARM = 12.0


@asynccontextmanager
async def _present() -> AsyncIterator[tuple[list[Peer], dict[str, str]]]:
    """Those that can be measured here, ready, and why the others can't."""
    missing = {}
    found = []
    async with AsyncExitStack() as stack:
        for peer in everyone():
            if reason := peer.missing():
                missing[peer.name] = reason
            else:
                await stack.enter_async_context(peer.ready())
                found.append(peer)
        yield found, missing


async def _take_turns(
    peers: Sequence[Peer], rounds: int, measure: Callable[[Peer], Awaitable[list[float]]]
) -> Times:
    turns = await Turns({peer.name: partial(measure, peer) for peer in peers}).take(rounds)
    return {peer.name: turns.times(peer.name) for peer in peers}


async def _first(task: Task, rounds: int) -> tuple[Times, dict[str, str]]:
    async with _present() as (present, missing):
        able = [peer for peer in present if task is PLAIN or peer.has_pandas]
        missing |= {peer.name: "it has no pandas" for peer in present if peer not in able}

        async def once(peer: Peer) -> list[float]:
            return [await peer.first(task)]

        return await _take_turns(able, rounds, once), missing


async def first(rounds: int) -> list[table.Row]:
    """A new session to its first result."""
    found, missing = await _first(PLAIN, rounds)
    return rows("new session → 1+1", found, missing, HastyKernel.name, {})


async def pandas(rounds: int) -> list[table.Row]:
    """A new session with pandas and matplotlib imported to its first pandas result."""
    found, missing = await _first(PANDAS, rounds)
    targets = {Pooled.name: PANDAS_FROM_POOL, OnDemand.name: PANDAS_ON_DEMAND}
    return rows("new session → pandas", found, missing, HastyKernel.name, targets)


async def warm(rounds: int) -> list[table.Row]:
    """A round trip of 1+1 in a session that lives, rich display included."""
    async with _present() as (present, missing):
        able = [peer for peer in present if peer.keeps_state]
        found = await _take_turns(able, rounds, lambda peer: peer.round_trips(BATCH))
    found = {"divingbell": found.pop(Pooled.name), **found}  # once it runs, it is all the same
    return rows("warm 1+1", found, missing, Kernel.name, {"divingbell": WARM})


def rows(
    measure: str, found: Times, missing: dict[str, str], against: str, targets: dict[str, float]
) -> list[table.Row]:
    """A row for each that was measured, compared with one of them, and for each that is missing."""
    medians = {name: statistics.median(values) for name, values in found.items()}
    made = []
    for name, values in found.items():
        ratio = target = ""
        if against in medians:
            faster = medians[against] / medians[name]
            ratio = f"{faster:.3g}×" if name != against else "1 (the measure of the others)"
            if name in targets:
                target = table.at_least(faster, targets[name])
        made.append(table.times(measure, name, values, ratio=ratio, target=target))
    made += [table.Row(measure, name, f"– ({reason})") for name, reason in missing.items()]
    return made
