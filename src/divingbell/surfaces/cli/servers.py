"""`divingbell servers`: the MCP servers that are configured, and how each of them is doing."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict

from divingbell.amounts import amount
from divingbell.escapes import one_line
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.upstream.fleet import ServerState
from divingbell.parts import gateway_alone
from divingbell.settings.config import Settings
from divingbell.settings.sources import FILE_NAME, MCP_FILE_NAME, user_folder
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.notes import NOTE

Show = Callable[[ServerState], None]

_NONE = """No MCP server is configured{beside}. Add one to {file}, in the folder
in which you start divingbell or, for all folders, in {own}:

  [servers.time]
  command = "uvx"
  args = ["mcp-server-time"]

or take over the list of another client: divingbell import claude (or cursor, vscode, PATH)."""
LIVE_PAUSE = 0.2
FIRST_PAUSE = 2.0
"""Seconds until it is said what is awaited, where it is said in lines; then twice as long …"""
MOST_SHOWN = 5
_CLEAR = "\r\x1b[2K"
_SIGNS = {"ready": ("✓", "green"), "failed": ("✗", "red"), "broken": ("✗", "red")}


async def report(settings: Settings, *, as_json: bool) -> int:
    """Connect to all of them and print how they are; the exit status is 1 if one can't be used.

    Each is printed when it is known how it is; what is awaited is said on stderr.
    """
    if not settings.servers:
        print(json.dumps([]) if as_json else _how_to_add_one())
        return exit_status.OK
    async with gateway_alone(settings) as gateway:
        names = [state.name for state in gateway.servers()]
        show = _nothing if as_json else _printer(max(map(len, names)))
        awaited = Awaited(names)
        async with awaited.announced():
            waiting = (_await(gateway, name, awaited, show) for name in names)
            states = await asyncio.gather(*waiting)
    if as_json:
        print(json.dumps([asdict(state) for state in states], indent=2))
    fine = all(state.state == "ready" for state in states)
    return exit_status.OK if fine else exit_status.FAILED


def _how_to_add_one() -> str:
    """Say what to do where there are no servers. A list that lies here is named, not read."""
    unused = not os.path.lexists(FILE_NAME) and os.path.isfile(MCP_FILE_NAME)
    beside = f" (there is an {MCP_FILE_NAME} here: --mcp-config {MCP_FILE_NAME})" if unused else ""
    own = one_line(str(user_folder(os.environ)))
    return _NONE.format(beside=beside, file=FILE_NAME, own=own)


async def _await(gateway: Gateway, name: str, awaited: "Awaited", show: Show) -> ServerState:
    """Return the state of a server once it is known: later it may be tried again, and be
    connecting."""
    await gateway.fleet.wait_until_ready(name)
    [state] = [state for state in gateway.servers() if state.name == name]
    awaited.done(name)
    show(state)
    return state


class Awaited:
    """The servers that have not answered yet: a line that stays up to date on a terminal, and
    elsewhere a line now and then."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._began = time.monotonic()
        self._live = sys.stderr.isatty()

    @asynccontextmanager
    async def announced(self) -> AsyncIterator[None]:
        """Say what is awaited, for as long as the block takes."""
        telling = asyncio.create_task(self._announce())
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.wait([telling])
            self._clear()

    def done(self, name: str) -> None:
        self._names.remove(name)
        self._clear()

    async def _announce(self) -> None:
        pause = LIVE_PAUSE if self._live else FIRST_PAUSE
        while True:
            await asyncio.sleep(pause)
            if self._names:
                self._write(f"{NOTE}waiting for {self._names_in_words()}")
            pause = pause if self._live else pause * 2

    def _names_in_words(self) -> str:
        shown = ", ".join(self._names[:MOST_SHOWN])
        more = len(self._names) - MOST_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        return f"{shown}{rest} ({time.monotonic() - self._began:.0f} s)"

    def _write(self, line: str) -> None:
        if self._live:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            print(_CLEAR + line[: width - 1], end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def _clear(self) -> None:
        if self._live:
            print(_CLEAR, end="", file=sys.stderr, flush=True)


def _nothing(_: ServerState) -> None:
    """Show nothing yet: as JSON, all comes at the end."""


def _printer(width: int) -> Show:
    from rich.text import Text

    from divingbell.surfaces.cli.terminal.console import Console

    console = Console()

    def show(state: ServerState) -> None:
        sign, colour = _SIGNS.get(state.state, ("·", "yellow"))
        words = amount(state.tools, "tool") if state.state == "ready" else one_line(state.reason)
        line = Text.assemble((f"{sign} ", colour), f"{state.name:<{width}}  {words}")
        console.print(line, soft_wrap=True)

    return show
