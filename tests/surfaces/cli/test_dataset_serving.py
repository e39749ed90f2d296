"""`divingbell datasets serve`, as clients start it or reach it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests import walls
from tests.datasets import making

WALLS = (walls.LOCAL, walls.DOCKER, walls.GVISOR)
PATIENCE = 120.0
COMMAND = ["-m", "divingbell", "datasets", "serve"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flights.csv").write_text(making.FLIGHTS)
    making.readable(tmp_path)
    return tmp_path


async def _answers(client: Client) -> None:
    result = await client.call_tool("query_dataset", {"sql": "SELECT count(*) AS n FROM flights"})
    assert [block.text for block in result.content] == ["1 rows × 1 columns:\nn\n3"]


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)
async def test_a_client_starts_it_and_speaks_over_its_stdin(folder: Path, wall: walls.Wall) -> None:
    walls.need(wall)
    words = [*COMMAND, "--backend", wall.name, str(folder)]
    server = StdioServerParameters(command=sys.executable, args=words)
    async with Client(server, read_timeout_seconds=PATIENCE) as client:
        await _answers(client)


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall.name)
async def test_a_folder_that_is_its_owners_alone_is_read_or_that_is_told(
    folder: Path, wall: walls.Wall
) -> None:
    walls.need(wall)
    folder.chmod(0o700)
    words = [*COMMAND, "--backend", wall.name, str(folder)]
    server = StdioServerParameters(command=sys.executable, args=words)
    async with Client(server, read_timeout_seconds=PATIENCE) as client:
        if os.geteuid() != 0:  # sessions are the same user
            await _answers(client)
            return
        for tool, given in (
            ("describe_dataset", {"name": "flights"}),
            ("import_dataset", {"name": "flights"}),
            ("query_dataset", {"sql": "SELECT count(*) AS n FROM flights"}),
        ):
            result = await client.call_tool(tool, given)
            [said] = [block.text for block in result.content]
            assert result.is_error and "sessions can't read it" in said, (tool, said)
            assert "chmod -R o+rX" in said and "/data" not in said
        folder.chmod(0o755)
        await _answers(client)


async def test_it_listens_for_those_who_have_its_token(folder: Path) -> None:
    with subprocess.Popen(  # noqa: ASYNC220 (it is spoken to over HTTP)
        [sys.executable, *COMMAND, "--http", "--port", "0", str(folder)],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = ""
            while "}\n}\n" not in said and (line := process.stderr.readline()):
                said += line
            url = re.findall(r"http://\S+/mcp", said)[0]
            token = re.findall(r"Bearer ([^\"]+)", said)[0]
            headers = {"Authorization": f"Bearer {token}"}
            async with create_mcp_http_client(headers=headers) as http:
                transport = streamable_http_client(url, http_client=http)
                async with Client(transport, read_timeout_seconds=PATIENCE) as client:
                    await _answers(client)
            async with create_mcp_http_client() as http:
                assert (await http.post(url, json={})).status_code == 401
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.parametrize("name", ["nowhere", "flights.csv"])
def test_what_is_no_folder_is_told_in_words(folder: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, *COMMAND, str(folder / name)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert str(folder / name) in done.stderr
    assert "Traceback" not in done.stderr
