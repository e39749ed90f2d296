"""How long: ten servers that take their time to start, against the slowest of them alone."""

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import bells
import table

from divingbell.parts import gateway_alone
from divingbell.settings import config

SERVER = str(Path(__file__).with_name("slow_server.py"))
DELAYS = tuple(round(0.1 * number, 1) for number in range(1, 11))
ABOUT = 1.5


async def connecting(rounds: int) -> list[table.Row]:
    """From nothing to the tools of all of them."""
    alone, together = [], []
    for number in range(rounds + 1):
        one, all_ten = await _connect(DELAYS[-1:]), await _connect(DELAYS)
        if number:
            alone.append(one)
            together.append(all_ten)
    ratio = median(together) / median(alone)
    measure = "connecting"
    return [
        table.times(
            measure,
            f"{len(DELAYS)} servers that need {DELAYS[0]:g} to {DELAYS[-1]:g} s to start",
            together,
            ratio=f"{ratio:.2f}× the slowest one; their sum is {sum(DELAYS):g} s",
            target=table.at_most(ratio, ABOUT, "×"),
        ),
        table.times(measure, f"the slowest one alone ({DELAYS[-1]:g} s)", alone, ratio="1"),
    ]


async def _connect(delays: Sequence[float]) -> float:
    entries = {
        f"slow{number}": {"command": sys.executable, "args": ["-S", "-E", SERVER, str(delay)]}
        for number, delay in enumerate(delays)
    }
    settings = config.load(None, {"servers": entries})
    started = time.perf_counter()
    async with gateway_alone(settings) as gateway:
        async with asyncio.timeout(bells.PATIENCE):
            # Not the tools: those are known from the last time before the server has said a word.
            while any(server.state != "ready" for server in gateway.servers()):  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        return time.perf_counter() - started
