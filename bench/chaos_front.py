"""A front of a Ray cluster that runs cells until its input ends, for `./dev bench scale_chaos`.

It writes a line of JSON for each run that it asks for, for each answer, and for each start and end
of a cell that the journal tells of.
"""

import asyncio
import json
import random
import sys
from typing import Any

from divingbell import Divingbell, DivingbellError
from divingbell.journal.events import CellEnded, CellStarted

USER = "chaos"
SESSIONS = 6
AT_ONCE = 3
CODE = "import time\ntime.sleep({})\nn = globals().get('n', 0) + 1\nn  # {}"
STARTS = 60
PAUSE = 0.2
"""Seconds after a refusal: there may be no node for a moment."""


def write(**told: Any) -> None:
    print(json.dumps(told), flush=True)


def note(event: object) -> None:
    if isinstance(event, CellStarted | CellEnded):
        kind = "began" if isinstance(event, CellStarted) else "ended"
        write(kind=kind, run=event.code.rpartition("# ")[2])


async def ask(bell: Divingbell, name: str, number: int) -> None:
    chance = random.Random(f"{name}-{number}")
    count = 0
    while True:
        count += 1
        run = f"{name}-{number}-{count}"
        write(kind="asked", run=run)
        try:
            session = await bell.open(f"session-{chance.randrange(SESSIONS)}", user=USER)
            result = await session.run(CODE.format(round(chance.random() / 4, 3), run))
            write(kind="answered", run=run, status=result.status, state=result.state)
        except DivingbellError as error:
            write(kind="answered", run=run, status=error.code, state="", words=str(error)[:300])
            await asyncio.sleep(PAUSE)


async def started(address: str) -> Divingbell:
    """Return a Divingbell of the cluster, which may lack its directory or nodes for a moment."""
    for _ in range(STARTS):
        bell = Divingbell(
            "ray", ray_address=address, preload=[], pool=1, open_timeout=5.0, on_event=note
        )
        try:
            return await bell.__aenter__()
        except DivingbellError as error:
            write(kind="refused", words=str(error)[:300])
            await asyncio.sleep(PAUSE)
    raise SystemExit("the cluster was never there")


async def main() -> None:
    _, address, name = sys.argv
    bell = await started(address)
    try:
        asking = [asyncio.create_task(ask(bell, name, number)) for number in range(AT_ONCE)]
        write(kind="ready")
        await asyncio.to_thread(sys.stdin.read)
        for each in asking:
            each.cancel()
        ends = await asyncio.gather(*asking, return_exceptions=True)
    finally:
        await bell.__aexit__(None, None, None)
    faults = [repr(end) for end in ends if not isinstance(end, asyncio.CancelledError)]
    write(kind="left", faults=faults)


if __name__ == "__main__":
    asyncio.run(main())
