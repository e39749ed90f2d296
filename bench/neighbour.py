"""What one session feels of another that does its worst: `./dev bench neighbour`.

A neighbour's warm `1 + 1` is measured beside an idle session, one that spins, and each flood. The
floods are those of the self-check, from a session with half a core. Beside the times stands the
longest piece of work of the event loop, by processor time and by the clock.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apart
import runner
import table
from pieces import Pieces

from divingbell import Divingbell, Session
from divingbell.promises import PREAMBLE, PROBES
from divingbell.shares import loop_thread
from divingbell.surfaces.auth import Tokens, hash_of
from divingbell.surfaces.http import listening
from divingbell.surfaces.http.application import application

SERVER = str(Path(__file__).with_name("flood_server.py"))
POSTING = str(Path(__file__).with_name("body_flood.py"))
TOKEN = "a-token-that-is-long-enough"
TIMES_SPINNING = 3.0
LONGEST_PIECE = 0.02
"""Seconds of processor time. By the clock a piece also has what else the machine did meanwhile."""
CORES = 0.5
PAUSE = 0.002
"""Seconds between two cells of the neighbour, so that they meet the flood anywhere."""
SETTLE = 0.5
OPEN_EVERY = 0.1
SPINNING = "spinning"
EVENTS = """
import sys
from IPython.display import clear_output, display
while True:
    for number in range(50):
        print(number, file=sys.stderr)
        print(number)
    display(number)
    clear_output()
"""
GATHERED = """
import asyncio
while True:
    calls = [call_mcp_tool(NAME, BODY) for _ in range(100)]
    await asyncio.gather(*calls, return_exceptions=True)
"""


GATHERED_FAILING = """
import asyncio
while True:
    calls = [call_mcp_tool(f"flood.nothing_{number}", {}) for number in range(100)]
    await asyncio.gather(*calls, return_exceptions=True)
"""


class Name(str):
    """Code, where a value is expected."""

    __slots__ = ()
    __repr__ = str.__str__


ROWS = Name("rows")


def _probe(name: str) -> str:
    return (PROBES / f"{name}.py").read_text("utf-8")


def _calls(name: str, **arguments: Any) -> str:
    return GATHERED.replace("NAME", repr(name)).replace("BODY", repr(arguments))


BODIES = "bodies of 15 MB over HTTP"
OPENINGS = "ten sessions opened a second"
CROWDS = {"two of one user that spin": 2, "thirty of one user that spin": 30}
"""Sessions, each with as many cores as a session has by default."""
FLOODS: Mapping[str, str] = {
    "idle": "",
    SPINNING: "while True: pass",
    "tiny frames": _probe("H60"),
    "forged marks and tiny frames": _probe("H61"),
    "the same by processes left behind": _probe("H62"),
    "displays": _probe("H63"),
    "headers full of brackets": _probe("H64"),
    "events among text": EVENTS,
    "text without end": "while True: print('x' * 1000)",
    "displays of 7 MB": (
        "from IPython.display import display\n"
        "while True: display({'image/png': bytes(7 << 20)}, raw=True)"
    ),
    "calls, 100 at once": _calls("flood.echo", text="x"),
    "calls with 20,000 brackets": f"rows = [[]] * 19_000\n{_calls('flood.echo', text=ROWS)}",
    "calls of tools that are not there": GATHERED_FAILING,
    "searches in a row": "while True: search_tools('report on shipments of customers', limit=50)",
    "results of 5 MB": "while True: call_mcp_tool('flood.rows', {'megabytes': 5})",
    BODIES: "",
    OPENINGS: "",
    **dict.fromkeys(CROWDS, ""),
}
"""What runs in the session beside; the bodies are posted by a process. Sessions are opened from a
pool, which is refilled meanwhile."""


@dataclass(slots=True)
class Measured:
    """One condition: the neighbour's times, round by round, and the loop's longest pieces."""

    rounds: list[list[float]] = field(default_factory=list)
    longest: float = 0.0
    """By processor time."""
    of: str = ""
    clock: float = 0.0

    def at(self, part: float) -> float:
        return _at(part, [seconds for times in self.rounds for seconds in times])

    def times_of(self, other: "Measured") -> list[float]:
        """How many times the other's p99 it has in each round, the least first.

        Round by round: what else the machine does from one minute to the next is in both.
        """
        pairs = zip(self.rounds, other.rounds, strict=True)
        return sorted(_at(0.99, mine) / _at(0.99, theirs) for mine, theirs in pairs)


def _at(part: float, times: list[float]) -> float:
    ordered = sorted(times)
    return ordered[min(round(len(ordered) * part), len(ordered) - 1)]


async def measure(
    chosen: argparse.Namespace, pieces: Pieces, names: list[str]
) -> dict[str, Measured]:
    """Measure all conditions in turn, round by round."""
    found = {name: Measured() for name in names}
    servers = {"flood": {"command": sys.executable, "args": [SERVER]}}
    limits = {"timeout": 600.0, "cpu_seconds": 600.0, "cores": CORES}
    async with Divingbell(chosen.backend, pool=0, servers=servers, search="words") as bell:
        gc.freeze()  # as `divingbell serve` does
        loop_thread.hand_over_soon()
        for turn in range(chosen.rounds):
            for name in names:
                print(f"· round {turn + 1}: beside {name}", file=sys.stderr, flush=True)
                async with bell.session() as neighbour, bell.session(**limits) as attacker:
                    await attacker.files.put(PREAMBLE.name, PREAMBLE)
                    await attacker.run("list_mcp_tools()", timeout=60)
                    await neighbour.run("1 + 1")
                    async with _flooding(bell, attacker, name):
                        await _beside(neighbour, chosen.seconds, pieces, found[name])
    return found


@contextlib.asynccontextmanager
async def _posting(bell: Divingbell) -> AsyncIterator[None]:
    tokens = Tokens({"ann": hash_of(TOKEN)})
    app, ready = application(bell, tokens), asyncio.Event()
    with listening.bound("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(listening.serve(app, listener, ready.set))
        await ready.wait()
        port = listener.getsockname()[1]
        process = await asyncio.create_subprocess_exec(sys.executable, POSTING, str(port), TOKEN)
        await asyncio.sleep(SETTLE)
        try:
            yield
        finally:
            process.kill()
            await process.wait()
            serving.cancel()
            await asyncio.wait([serving])


def _flooding(
    bell: Divingbell, attacker: Session, name: str
) -> contextlib.AbstractAsyncContextManager[None]:
    if name == BODIES:
        return _posting(bell)
    if name == OPENINGS:
        return _opening(bell)
    if name in CROWDS:
        return _crowd(bell, CROWDS[name])
    return _meanwhile(_run(attacker, FLOODS[name]))


async def _run(session: Session, code: str) -> None:
    while code:
        await session.run(code)
        await asyncio.sleep(PAUSE)


@contextlib.asynccontextmanager
async def _opening(bell: Divingbell) -> AsyncIterator[None]:
    async with (
        Divingbell(bell.settings.backend) as pooled,
        _meanwhile(_open_often(pooled)),
    ):
        yield


@contextlib.asynccontextmanager
async def _crowd(bell: Divingbell, count: int) -> AsyncIterator[None]:
    limits = {"timeout": 600.0, "cpu_seconds": 600.0}
    async with contextlib.AsyncExitStack() as stack:
        opened = [bell.session(user="crowd", **limits) for _ in range(count)]
        sessions = [await stack.enter_async_context(each) for each in opened]
        await stack.enter_async_context(_meanwhile(_run_all(sessions, FLOODS[SPINNING])))
        yield


async def _run_all(sessions: list[Session], code: str) -> None:
    await asyncio.gather(*(_run(session, code) for session in sessions))


async def _open_often(bell: Divingbell) -> None:
    while True:
        async with bell.session() as session:
            await session.run("1 + 1")
        await asyncio.sleep(OPEN_EVERY)


@contextlib.asynccontextmanager
async def _meanwhile(flood: Coroutine[None, None, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(flood)
    await asyncio.sleep(SETTLE)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()  # type: ignore[misc]


async def _beside(neighbour: Session, seconds: float, pieces: Pieces, into: Measured) -> None:
    pieces.begin_anew()
    times: list[float] = []
    into.rounds.append(times)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await asyncio.sleep(PAUSE)
        started = time.perf_counter()
        result = await neighbour.run("1 + 1")
        times.append(time.perf_counter() - started)
        assert result.value == 2, result
    if pieces.processor > into.longest:
        into.longest, into.of = pieces.processor, pieces.of
    into.clock = max(into.clock, pieces.clock)


def render(found: Mapping[str, Measured]) -> str:
    ratio = f"p99, of {SPINNING}: median (all rounds)"
    lines = [
        ("beside", "p50", "p99", ratio, "longest piece", "by the clock", "cells"),
        *(
            (
                name,
                table.seconds(one.at(0.5)),
                table.seconds(one.at(0.99)),
                _in_words(one.times_of(found[SPINNING])),
                table.seconds(one.longest),
                table.seconds(one.clock),
                str(sum(map(len, one.rounds))),
            )
            for name, one in found.items()
        ),
    ]
    return table.aligned(lines)


def _in_words(times: list[float]) -> str:
    return f"{statistics.median(times):.1f}× ({times[0]:.1f}–{times[-1]:.1f})"


def missed(found: Mapping[str, Measured]) -> list[str]:
    """The conditions in which an aim is not met, in words."""
    words = []
    for name, one in found.items():
        times = statistics.median(one.times_of(found[SPINNING]))
        if name != SPINNING and times > TIMES_SPINNING:
            words.append(f"{name}: p99 is {times:.1f} times that beside one that spins")
        if one.longest > LONGEST_PIECE:
            words.append(f"{name}: {one.of} took {table.seconds(one.longest)} of processor time")
    return words


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench neighbour", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="half a second each, one round")
    parser.add_argument(
        "--only", action="append", choices=FLOODS, help="this flood; may be repeated"
    )
    parser.add_argument("--seconds", type=float, help="of each flood, each round (10; quick: 0.5)")
    parser.add_argument("--rounds", type=int, help="turns of all floods (3; quick: 1)")
    parser.add_argument("--backend", default="local", help="the walls (local)")
    runner.add_outputs(parser)
    chosen = parser.parse_args()
    chosen.seconds = chosen.seconds or (0.5 if chosen.quick else 10.0)
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 3)
    return chosen


def main() -> None:
    chosen = _arguments()
    names = [
        name
        for name in FLOODS
        if chosen.only is None or name in chosen.only or name in ("idle", SPINNING)
    ]
    pieces = Pieces()
    with (
        apart.home(),
        asyncio.Runner() as loop,
    ):
        pieces.watch()
        found = loop.run(measure(chosen, pieces, names))
    words = [f"NOT met: {line}" for line in missed(found)] or [
        f"met: p99 at most {TIMES_SPINNING:g} times that beside one that spins, "
        f"and no piece of processor time over {table.seconds(LONGEST_PIECE)}"
    ]
    text = "\n".join((table.heading(), "", render(found), "", *words, ""))
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text, encoding="utf-8")
    if chosen.json is not None:
        plain = {
            name: {"rounds": one.rounds, "longest": one.longest, "of": one.of}
            for name, one in found.items()
        }
        chosen.json.write_text(json.dumps(plain), encoding="utf-8")


if __name__ == "__main__":
    main()
