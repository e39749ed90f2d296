"""`divingbell servers`: the MCP servers that are configured, and how each of them is doing."""

import asyncio
import contextlib
import json
import sys
from dataclasses import asdict

from divingbell.app import gateway_alone
from divingbell.config import Settings
from divingbell.errors import ToolFailed
from divingbell.gateway.fleet import ServerState
from divingbell.gateway.gateway import Gateway
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.escapes import one_line

_NONE = """No MCP server is configured. Add one to divingbell.toml:

  [servers.time]
  command = "uvx"
  args = ["mcp-server-time"]

or take over the list of another client: divingbell import claude (or cursor, vscode, PATH)."""
_SIGNS = {"ready": ("✓", "green"), "failed": ("✗", "red"), "broken": ("✗", "red")}


async def report(settings: Settings, *, as_json: bool) -> int:
    """Connect to all of them and print how they are; the exit status is 1 if one can't be used."""
    if not settings.servers:
        print(json.dumps([]) if as_json else _NONE)
        return exit_status.OK
    async with gateway_alone(settings) as gateway:
        await asyncio.gather(*(_connect(gateway, state.name) for state in gateway.servers()))
        states = gateway.servers()
    if as_json:
        print(json.dumps([asdict(state) for state in states], indent=2))
    else:
        _show(states)
    fine = all(state.state == "ready" for state in states)
    return exit_status.OK if fine else exit_status.FAILED


async def _connect(gateway: Gateway, name: str) -> None:
    with contextlib.suppress(ToolFailed):  # its state says why
        await gateway.upstream(name).ready()


def _show(states: list[ServerState]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    width = max(len(state.name) for state in states)
    for state in states:
        sign, colour = _SIGNS.get(state.state, ("·", "yellow"))
        words = f"{state.tools} tools" if state.state == "ready" else one_line(state.reason)
        line = Text.assemble((f"{sign} ", colour), f"{state.name:<{width}}  {words}")
        console.print(line, soft_wrap=True)
