"""The tool lists of real servers (tests/tool_lists.py), and servers that serve them."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import bells

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tool_lists import search_queries as search_queries  # for those who use this module
from tests.tool_lists import tool_lists


def count() -> int:
    """The number of tools that they have."""
    return sum(map(len, tool_lists().values()))


def environment() -> dict[str, str]:
    """The variables that a Divingbell in a process of its own has to have."""
    kept = ("PATH", "HOME", "DIVINGBELL_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR")
    known = {name: os.environ[name] for name in kept if name in os.environ}
    return known | {"DIVINGBELL_SEARCH": "words"}


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[dict[str, dict[str, str]]]:
    """Serve them all, over streamable HTTP from one process; the entries of an mcp.json."""
    port = free_port()
    script = Path(__file__).with_name("list_server.py")
    with running([str(script), str(port)]):
        await listening(port)
        yield {name: {"url": f"http://127.0.0.1:{port}/{name}/mcp"} for name in tool_lists()}


@contextlib.contextmanager
def running(arguments: Sequence[str]) -> Iterator[None]:
    """A Python program that runs as long as the block does."""
    process = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


async def listening(port: int) -> None:
    """Return once somebody listens on the port."""
    async with asyncio.timeout(bells.PATIENCE):
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.02)
