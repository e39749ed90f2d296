"""The Inspector's command line, a client that others wrote."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from divingbell.surfaces.mcp.definitions import NAMES
from tests import real_servers
from tests.surfaces.mcp.serving import COMMAND, QUIET, Serving, serving

TIMEOUT = 60
TOKEN = "inspectors-own-token"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Serving]:
    file = tmp_path_factory.mktemp("inspector") / "tokens"
    file.write_text(f"inspector {TOKEN}\n")
    async with serving("--token-file", str(file)) as server:
        yield server


async def inspect(target: list[str], *arguments: str, folder: Path) -> dict[str, Any]:
    command, before = real_servers.inspector("--cli")
    process = await asyncio.create_subprocess_exec(
        command, *before, *target, *arguments, cwd=folder,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TIMEOUT):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    found: dict[str, Any] = json.loads(output)
    return found


STDIO = ["-e", f"DIVINGBELL_POOL={QUIET['DIVINGBELL_POOL']}", COMMAND, "serve"]


def _http(server: Serving) -> list[str]:
    return [server.url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}"]


async def test_it_lists_the_tools(server: Serving, tmp_path: Path) -> None:
    listed = await inspect(_http(server), "--method", "tools/list", folder=tmp_path)
    assert {tool["name"] for tool in listed["tools"]} == NAMES


async def test_it_lists_resources(server: Serving, tmp_path: Path) -> None:
    listed = await inspect(_http(server), "--method", "resources/list", folder=tmp_path)
    assert listed == {"resources": []}


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_it_runs_code(transport: str, server: Serving, tmp_path: Path) -> None:
    result = await inspect(
        STDIO if transport == "stdio" else _http(server),
        "--method", "tools/call", "--tool-name", "execute_python",
        "--tool-arg", "code=print(6 * 7)",
        folder=tmp_path,
    )  # fmt: skip
    assert result["content"] == [{"type": "text", "text": "42\n"}]
