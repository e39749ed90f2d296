"""How long: a first result and a warm one, behind each wall and with others. All take turns."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import rivals
import table
from peers import PANDAS, Peer
from rivals import DockerRun, LlmSandbox, LlmSandboxInteractive
from sealed import RESTORED, RESTORING, SETTINGS, Wall
from turns import Turns, Unable, Way

from divingbell.errors import DivingbellError

FROM_POOL = 20.0
"""Milliseconds."""
TIMES_BY_HAND = 1.1
TIMES_LLM_SANDBOX = 20.0
BATCH = 20
SLOW_BATCH = 3
"""Warm round trips in a row before it is the next one's turn; those of others take longer."""
RUNC, RUNSC = DockerRun("runc").name, DockerRun("runsc").name
BY_HAND = {"docker": RUNC, "docker-runsc": RUNSC, "gvisor": RUNSC, RESTORED: RUNSC}
"""What each wall is compared with."""
AIMED_AT = ("docker", "gvisor", RESTORED)


@dataclass
class Present:
    """Those that can be measured here, ready, and why the others can't."""

    walls: list[Wall] = field(default_factory=list)
    others: list[Peer] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


@asynccontextmanager
async def _present(others: list[Peer]) -> AsyncIterator[Present]:
    found = Present()
    async with AsyncExitStack() as stack:
        for wall in map(Wall, SETTINGS):
            try:
                await stack.enter_async_context(wall.ready())
                found.walls.append(wall)
            except DivingbellError as error:
                found.missing[wall.name] = rivals.briefly(error)
        for other in others:
            try:
                if reason := other.missing():
                    raise Unable(reason)
                await stack.enter_async_context(other.ready())
                found.others.append(other)
            except Unable as error:
                found.missing[other.name] = str(error)
        yield found


async def first(rounds: int, *, install: bool) -> list[table.Row]:
    """A new session to its first pandas result: from the pool, and cold."""
    async with _present(rivals.everyone(install=install)) as present:
        ways: dict[str, Way] = {}
        by_hand = {other.name: other for other in present.others if isinstance(other, DockerRun)}
        for wall in present.walls:
            ways[_pooled(wall.name)] = partial(wall.from_pool, PANDAS)
            ways[wall.name] = partial(wall.cold, PANDAS)
            if wall.name == RESTORING and not _refused(present, wall):
                ways[RESTORED] = partial(wall.restored, PANDAS)
            if beside := by_hand.get(BY_HAND.get(wall.name, "")):
                ways[beside.name] = partial(_once, beside)  # what it is compared with
        for other in present.others:
            ways[other.name] = partial(_once, other)
        turns = await Turns(ways).take(rounds)
    missing = present.missing | turns.missing
    if RESTORING in missing:
        missing[RESTORED] = missing[RESTORING]
    rows = []
    for name in SETTINGS:
        if _pooled(name) in turns:
            rows.append(_from_pool_row(name, turns.times(_pooled(name))))
        else:
            rows.append(table.Row("first pandas result, pool", name, _why_not(missing, name)))
    others = [other.name for other in rivals.everyone(install=install)]
    for name in [*SETTINGS, RESTORED, *others]:
        if name in turns:
            rows.append(_cold_row(name, turns))
        else:
            rows.append(table.Row("first pandas result, cold", name, _why_not(missing, name)))
    return rows


async def warm(rounds: int, *, install: bool) -> list[table.Row]:
    """A round trip of 1+1 in a session that lives."""
    others = [other for other in rivals.everyone(install=install) if other.keeps_state]
    async with _present(others) as present:
        ways: dict[str, Way] = {
            wall.name: partial(wall.round_trips, BATCH) for wall in present.walls
        }
        for other in present.others:
            ways[other.name] = partial(other.round_trips, SLOW_BATCH)
        turns = await Turns(ways).take(rounds)
    missing = present.missing | turns.missing
    # The faster of its two ways is the one to beat.
    theirs = [name for name in (LlmSandbox.name, LlmSandboxInteractive.name) if name in turns]
    against = min(theirs, key=lambda name: median(turns.times(name)), default=None)
    rows = []
    for name in [*SETTINGS, *(other.name for other in others)]:
        if name not in turns:
            rows.append(table.Row("warm 1+1", name, _why_not(missing, name)))
            continue
        ratio = target = ""
        if against is not None:
            faster = 1 / turns.ratio(name, against)
            ratio = f"{faster:.3g}× as fast as {against}" if name != against else "1"
            if name == "docker":
                target = table.at_least(faster, TIMES_LLM_SANDBOX)
        rows.append(table.times("warm 1+1", name, turns.times(name), ratio=ratio, target=target))
    return rows


async def _once(other: Peer) -> list[float]:
    return [await other.first(PANDAS)]


def _refused(present: Present, wall: Wall) -> bool:
    """Note why sessions are not restored, if they are not."""
    if refusal := wall.refusal():
        present.missing[RESTORED] = refusal
    return bool(refusal)


def _pooled(wall: str) -> str:
    return f"{wall}, from the pool"


def _why_not(missing: Mapping[str, str], name: str) -> str:
    return f"– ({missing[name]})"


def _from_pool_row(wall: str, values: list[float]) -> table.Row:
    reached = median(values) * 1000
    target = table.at_most(reached, FROM_POOL, " ms") if wall in AIMED_AT else ""
    return table.times("first pandas result, pool", wall, values, target=target)


def _cold_row(name: str, turns: Turns) -> table.Row:
    against = BY_HAND.get(name, RUNC)
    ratio = target = ""
    if name == against:
        ratio = "1"
    elif against in turns:
        times = turns.ratio(name, against)
        ratio = f"{times:.3g}× {against}"
        if name in AIMED_AT:
            target = table.at_most(times, TIMES_BY_HAND, "×")
    values = turns.times(name)
    return table.times("first pandas result, cold", name, values, ratio=ratio, target=target)
