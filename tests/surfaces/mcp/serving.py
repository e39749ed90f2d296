"""`divingbell serve` as a process of its own, as clients start it."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import real_servers
from tests.waiting import PATIENCE

COMMAND = str(Path(sys.executable).with_name("divingbell"))
QUIET = {"DIVINGBELL_POOL": "0"}


@dataclass
class Serving:
    """A server that listens."""

    url: str
    greeting: dict[str, Any]
    process: asyncio.subprocess.Process


def settings(folder: Path, servers: Mapping[str, Mapping[str, Any]], mode: str = "code") -> Path:
    """Write a divingbell.toml with these servers; return its path."""
    lines = [f'mode = "{mode}"', "pool = 0"]
    for name, entry in servers.items():
        lines += [f"[servers.{name}]", *(f"{key} = {json.dumps(entry[key])}" for key in entry)]
    path = folder / "divingbell.toml"
    path.write_text("\n".join(lines))
    return path


def fixture(name: str, **more: Any) -> dict[str, Any]:
    """The entry of a server of our own."""
    command, arguments = real_servers.fixture(name)
    return {"command": command, "args": arguments, **more}


@contextlib.asynccontextmanager
async def serving(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Serving]:
    """Run `divingbell serve --http` at a free port; it ends well when told to."""
    process = await asyncio.create_subprocess_exec(
        COMMAND, "serve", "--http", "--port", "0", *arguments,
        env=os.environ | QUIET | dict(environment or {}),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE * 3):
            said = ""
            while "listening at" not in said:
                line = await process.stderr.readline()
                assert line, f"it has ended: {said}"
                said = line.decode()
            greeting = json.loads(await process.stderr.readuntil(b"\n}\n"))
        entry = greeting["mcpServers"]["divingbell"]
        draining = asyncio.create_task(_drain(process.stderr))
        yield Serving(entry["url"], entry, process)
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 143
            await draining
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
