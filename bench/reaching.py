"""How long: a call of a trivial tool from behind each wall."""

from contextlib import AsyncExitStack
from functools import partial

import bells
import calling
import rivals
import table
from sealed import RESTORING, SETTINGS
from turns import Turns, Way

from divingbell import Session
from divingbell.errors import DivingbellError
from divingbell.sandbox.registry import DEFAULT

MEASURE = "a tool call"
TIMES_LOCAL = 5.0
ERA: calling.Era = "2026"


async def reaching(rounds: int) -> list[table.Row]:
    """One call after the other over stdio, each wall with a server of its own."""
    missing = {}
    ways: dict[str, Way] = {}
    async with AsyncExitStack() as stack:
        entry = await stack.enter_async_context(calling.server("stdio"))
        for wall, settings in SETTINGS.items():
            try:
                bell = await stack.enter_async_context(bells.ring(**settings, pool=0))
                session = await stack.enter_async_context(bell.session())
            except DivingbellError as error:
                missing[wall] = rivals.briefly(error)
                continue
            calling.connect(bell, entry, ERA)
            ways[wall] = partial(_batch, session)
        turns = await Turns(ways).take(rounds)
    rows = []
    for wall in SETTINGS:
        if wall not in turns:
            rows.append(table.Row(MEASURE, wall, f"– ({missing[wall]})"))
            continue
        ratio = target = ""
        if DEFAULT in turns:
            times = turns.ratio(wall, DEFAULT)
            ratio = f"{times:.3g}× {DEFAULT}" if wall != DEFAULT else "1"
            target = table.at_most(times, TIMES_LOCAL, "×") if wall == RESTORING else ""
        rows.append(table.times(MEASURE, wall, turns.times(wall), ratio=ratio, target=target))
    return rows


async def _batch(session: Session) -> list[float]:
    taken: list[float] = await calling.run(session, calling.ONE_BY_ONE, count=calling.BATCH)
    return taken
