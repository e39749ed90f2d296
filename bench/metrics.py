"""What metrics cost: `./dev bench metrics`.

The processor time that counting adds to a cell, by its events and beside the log lines that are
written of the same events; the same end to end, with metrics on and off in turns; and what it takes
to write out as many series as there can be. Rows with a target say whether it was met.
"""

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import apart
import bells
import table
from runner import Amount, Benchmark

from divingbell import Session
from divingbell.journal import log_lines
from divingbell.journal.events import CallDecided, CallEnded, CallRequested, CellEnded, CellStarted
from divingbell.journal.metrics import MOST_SERVERS, Metrics, Surroundings
from divingbell.models import Ledger, Result, ToolCall, Usage
from divingbell.principal import Principal

MOST_ADDED = 30.0
"""Microseconds of processor time for a cell."""
MOST_HELD = 20.0
"""Milliseconds of it in which nobody else runs."""
CALLS = 3
EACH = 1_000
WHO = Principal("bench", "c", "http")
OUTCOMES = ("ok", "denied", "refused", "failed", "cancelled")


def _cell(calls: int) -> list[Any]:
    """The events of a cell that calls so many tools."""
    made = tuple(ToolCall(f"shop.tool{number}", "{}", "ok") for number in range(calls))
    ledger = Ledger(code_tokens=50, output_tokens=20, direct_call_tokens=4000, calls=calls)
    result = Result("ok", usage=Usage(wall_ms=3, cpu_ms=2), calls=made, ledger=ledger)
    events: list[Any] = [CellStarted(WHO, "k", 1, "x" * 300)]
    for call in range(calls):
        events += _call(call, f"shop.tool{call}", "ok")
    return [*events, CellEnded(WHO, "k", 1, "x" * 300, result)]


def _call(number: int, name: str, outcome: Any) -> list[Any]:
    whose = (number, WHO, "k", 1, "code", "tool")
    ended = CallEnded(*whose, name, outcome, "", True, {}, b"", None, b"", 0.01)
    return [CallRequested(*whose, name), CallDecided(number, name, "allow", None, ""), ended]


def _taken(take: Callable[[Any], None], events: list[Any]) -> float:
    """Microseconds of processor time for one cell's events."""
    began = time.thread_time()
    for _ in range(EACH):
        for event in events:
            take(event)
    return (time.thread_time() - began) / EACH * 1e6


async def events(rounds: int) -> list[table.Row]:
    """Counting beside the log lines of the same events, in turns."""
    metrics = Metrics(Surroundings(servers=["shop"], backend=lambda: "local", price=3.0))
    rows = []
    for calls in (0, CALLS):
        cell = _cell(calls)
        ours, lines = list[float](), list[float]()
        for _ in range(rounds):
            ours.append(_taken(metrics.take, cell))
            lines.append(_taken(log_lines.write, cell))
        middle, beside = statistics.median(ours), statistics.median(lines)
        target = table.at_most(middle, MOST_ADDED, " µs")
        measure = f"processor time added to a cell with {calls} calls"
        rows += [
            table.Row(measure, "metrics", f"{middle:.1f} µs", f"{middle / beside:.1f}× log lines",
                      target, runs=str(rounds)),
            table.Row(measure, "log lines, to nobody", f"{beside:.1f} µs", "1"),
        ]  # fmt: skip
    return rows


async def cells(rounds: int) -> list[table.Row]:
    """Warm cells with metrics and without, in turns: the host's own processor time."""
    took: dict[str, list[float]] = {"on": [], "off": []}
    async with (
        bells.ring(pool=0, preload=[], metrics="on") as first,
        bells.ring(pool=0, preload=[], metrics="off") as second,
        first.session() as on,
        second.session() as off,
    ):
        for _ in range(rounds):
            for name, session in (("on", on), ("off", off)):
                took[name].append(await _host_time(session))
    ratio = statistics.median(took["on"]) / statistics.median(took["off"])
    measure = "the host's processor time for `1 + 1`"
    return [
        table.times(measure, "metrics on", took["on"], ratio=f"{ratio:.2f}× off"),
        table.times(measure, "metrics off", took["off"], ratio="1"),
    ]


async def _host_time(session: Session, times: int = 50) -> float:
    began = time.process_time()
    for _ in range(times):
        await session.run("1 + 1")
    return (time.process_time() - began) / times


async def rendering(rounds: int) -> list[table.Row]:
    """As many series as there can be, written out while the loop has other work."""
    servers = [f"server-{number}" for number in range(MOST_SERVERS)]
    metrics = Metrics(Surroundings(servers=servers))
    for server in servers:
        for outcome in OUTCOMES:
            for event in _call(1, f"{server}.tool", outcome):
                metrics.take(event)
    took, held = list[float](), list[float]()
    for _ in range(rounds):
        began, before = time.process_time(), time.thread_time()
        rendered = asyncio.create_task(metrics.render())
        while not rendered.done():  # noqa: ASYNC110 (it is measured how long others are kept out)
            await asyncio.sleep(0)
        took.append(time.process_time() - began - (time.thread_time() - before))
        loop_began = time.thread_time()
        task = asyncio.create_task(metrics.render())
        await task
        held.append(time.thread_time() - loop_began)
    size = len((await metrics.render()).splitlines())
    longest = max(held) * 1000
    return [
        table.times(f"{size} lines written out", "a thread", took),
        table.times(f"{size} lines written out", "the loop", held,
                    target=table.at_most(longest, MOST_HELD, " ms")),
    ]  # fmt: skip


BENCHMARK = Benchmark(
    "metrics",
    __doc__,
    parts={
        "events": lambda chosen: events(chosen.rounds),
        "cells": lambda chosen: cells(chosen.rounds),
        "render": lambda chosen: rendering(chosen.rounds),
    },
    amounts={"rounds": Amount("turns with metrics and without", 20, 3)},
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
