"""Functions of the host called from code, beside a tool of an MCP server."""

from functools import partial

import bells
import calling
import table
from turns import Turns, Way

from divingbell import Session

TIMES_SERVER = 0.7
SERVER = "MCP tool over stdio"
PLAIN = "host function"
ASYNC = "async host function"
ONE_BY_ONE = """
import importlib, time
call = getattr(importlib.import_module(f"servers.{server}"), tool)
taken = []
for number in range(count):
    started = time.perf_counter()
    answer = call(f"number {number}")
    taken.append(time.perf_counter() - started)
    assert answer == f"number {number}"
taken
"""


def echo(text: str) -> str:
    """Give the text back."""
    return text


async def echo_async(text: str) -> str:
    """Give the text back."""
    return text


async def functions(rounds: int) -> list[table.Row]:
    """One call after the other: a function, an async one, and a tool of a server."""
    async with (
        bells.ring(pool=0, tools=[echo, echo_async]) as bell,
        calling.server("stdio") as entry,
        bell.session() as session,
    ):
        bell.gateway.add("bench", entry)
        turns = await Turns(_ways(session)).take(rounds)
    return _rows(turns)


def _ways(session: Session) -> dict[str, Way]:
    called = {SERVER: ("bench", "echo"), PLAIN: ("host", "echo"), ASYNC: ("host", "echo_async")}
    return {
        way: partial(
            calling.run, session, ONE_BY_ONE, count=calling.BATCH, server=server, tool=tool
        )
        for way, (server, tool) in called.items()
    }


def _rows(turns: Turns) -> list[table.Row]:
    rows = [table.times("a call from code", SERVER, turns.times(SERVER), ratio="1")]
    for way in (PLAIN, ASYNC):
        ratio = turns.ratio(way, SERVER)
        target = table.at_most(ratio, TIMES_SERVER, "×")
        shown = f"{ratio:.2f}× the MCP tool"
        rows.append(
            table.times("a call from code", way, turns.times(way), ratio=shown, target=target)
        )
    return rows
