"""The tool lists of real servers that lie beside the checkout, and servers that serve them.

They are the work of others and no part of this project: DIVINGBELL_TEST_DATA names their folder,
`../shared/data` by default.
"""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import bells

ROOT = Path(__file__).resolve().parents[1]
# Taken out: to a Divingbell in this process it would be a setting that there is not.
FOLDER = Path(os.environ.pop("DIVINGBELL_TEST_DATA", ROOT.parent / "shared" / "data")) / "tools"
QUERIES = ROOT / "tests" / "data" / "search_queries.json"


def missing() -> str | None:
    """Why nothing can be measured with them, if nothing can."""
    if any(FOLDER.glob("*.json")):
        return None
    return "no tool lists beside the checkout: set DIVINGBELL_TEST_DATA to their folder"


def definitions() -> dict[str, list[dict[str, Any]]]:
    """What each server answers to `tools/list`."""
    files = sorted(FOLDER.glob("*.json"))
    return {file.stem: json.loads(file.read_text("utf-8")) for file in files}


def count() -> int:
    """How many tools they have."""
    return sum(map(len, definitions().values()))


def environment() -> dict[str, str]:
    """What a Divingbell in a process of its own has to know."""
    kept = ("PATH", "HOME", "DIVINGBELL_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "TMPDIR")
    known = {name: os.environ[name] for name in kept if name in os.environ}
    return known | {"DIVINGBELL_SEARCH": "words"}


def questions() -> list[dict[str, Any]]:
    """What people look for, each with every tool (`server.tool`) that would do."""
    there = {
        f"{server}.{definition['name']}"
        for server, listed in definitions().items()
        for definition in listed
    }
    found: list[dict[str, Any]] = json.loads(QUERIES.read_text("utf-8"))
    return [question for question in found if there.issuperset(question["answers"])]


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[dict[str, dict[str, str]]]:
    """Serve them all, over streamable HTTP from one process; the entries of an mcp.json."""
    port = free_port()
    script = Path(__file__).with_name("list_server.py")
    with running([str(script), str(port), str(FOLDER)]):
        await listening(port)
        yield {name: {"url": f"http://127.0.0.1:{port}/{name}/mcp"} for name in definitions()}


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
