"""`divingbell serve` while its sandbox still starts, and when it can't."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests import real_servers
from tests.surfaces.mcp.conftest import Era, Listener, text_of
from tests.surfaces.mcp.held_back import WAITING, HeldBack, held_back
from tests.surfaces.mcp.serving import COMMAND, QUIET, Serving, fixture, serving, settings
from tests.waiting import PATIENCE, until

NO_INDEX = {"UV_OFFLINE": "1"}
"""With an empty cache no package can be had."""
CODE = {"code": "6 * 7"}


@pytest.fixture
def held(tmp_path: Path) -> Iterator[HeldBack]:
    with held_back(tmp_path) as held:
        yield held


@contextlib.asynccontextmanager
async def over_stdio(era: Era, environment: Mapping[str, str], *arguments: str) -> Any:
    parameters = StdioServerParameters(
        command=COMMAND, args=["serve", *arguments], env={**os.environ, **QUIET, **environment}
    )
    async with Client(parameters, mode=era) as client:
        yield client


@contextlib.asynccontextmanager
async def over_http(server: Serving, era: Era) -> AsyncIterator[Client]:
    headers = server.greeting["headers"]
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE * 3) as inner,
        Client(streamable_http_client(server.url, http_client=inner), mode=era) as client,
    ):
        yield client


def told(listener: Listener) -> str:
    return "\n".join(words or "" for _, words in listener.progress)


async def waits_until_released(client: Client, held: HeldBack, listener: Listener) -> None:
    """A cell that comes too early is told what it waits for, and runs once the sandbox is up."""
    assert client.server_info is not None and client.server_info.name == "divingbell"
    assert "execute_python" in [tool.name for tool in (await client.list_tools()).tools]
    assert text_of(await client.call_tool("list_sessions", {})) == "You have no sessions."
    running = asyncio.create_task(
        client.call_tool("execute_python", CODE, progress_callback=listener.on_progress)
    )
    await until(lambda: WAITING in told(listener), "it is told")
    assert not running.done()
    held.release()
    assert text_of(await running) == "42\n"
    steps = [number for number, _ in listener.progress]
    assert steps == sorted(set(steps)), "progress has to increase"


async def test_over_stdio_it_answers_while_its_sandbox_starts(
    held: HeldBack, era: Era, listener: Listener
) -> None:
    async with over_stdio(era, held.environment) as client:
        await waits_until_released(client, held, listener)


async def test_over_http_it_answers_while_its_sandbox_starts(
    held: HeldBack, era: Era, listener: Listener
) -> None:
    async with (
        serving(environment=held.environment) as server,
        over_http(server, era) as client,
    ):
        await waits_until_released(client, held, listener)


async def test_tools_are_found_while_the_sandbox_starts(held: HeldBack, tmp_path: Path) -> None:
    file = settings(tmp_path, {"shop": fixture("workshop")})
    async with over_stdio("auto", held.environment, "--config", str(file)) as client:
        assert "shop.echo" in text_of(await client.call_tool("search_tools", {"query": "echo"}))


async def test_a_server_that_is_slow_to_connect_is_named_by_progress(
    tmp_path: Path, listener: Listener
) -> None:
    command, arguments = real_servers.fixture("slow_start")
    slow = {"command": command, "args": [*arguments, "300"], "start_timeout": 60}
    file = settings(tmp_path, {"slow": slow})
    async with over_stdio("auto", {}, "--config", str(file)) as client:
        code = {"code": "import servers.slow.anything"}
        running = asyncio.create_task(
            client.call_tool("execute_python", code, progress_callback=listener.on_progress)
        )
        await until(lambda: "slow connecting to the server" in told(listener), "it is named")
        running.cancel()


# Left before it is up


@contextlib.asynccontextmanager
async def started(
    *arguments: str, environment: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        COMMAND, "serve", *arguments, env={**os.environ, **QUIET, **environment},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(process: asyncio.subprocess.Process, words: str) -> None:
    """Return once it has said this on stderr."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        while words not in (line := (await process.stderr.readline()).decode()):
            assert line, "it has ended"


async def ended(process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(PATIENCE):
        return await process.wait()


def left_in(held: HeldBack) -> list[str]:
    """What is in the folder of profiles, besides the lock."""
    return [path.name for path in held.profiles.iterdir() if not path.name.endswith(".lock")]


async def test_a_client_that_leaves_before_the_sandbox_is_up_is_not_waited_for(
    held: HeldBack,
) -> None:
    async with started(environment=held.environment) as process:
        await said(process, WAITING)
        assert process.stdin is not None
        process.stdin.close()
        assert await ended(process) == 0


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
@pytest.mark.parametrize("transport", [(), ("--http", "--port", "0")], ids=["stdio", "http"])
async def test_it_ends_when_told_to_while_the_sandbox_starts(
    held: HeldBack, transport: tuple[str, ...], number: signal.Signals, status: int
) -> None:
    async with started(*transport, environment=held.environment) as process:
        await said(process, WAITING)
        process.send_signal(number)
        assert await ended(process) == status


async def test_what_is_half_prepared_is_removed_and_nothing_goes_on(held: HeldBack) -> None:
    held.abandon()
    async with started(environment=held.environment) as process:
        await said(process, "preparing the profile")
        await until(lambda: left_in(held), "it has begun")
        process.send_signal(signal.SIGTERM)
        assert await ended(process) == 143
    assert left_in(held) == []
    mine = str(held.profiles).encode()
    commands = [path / "cmdline" for path in Path("/proc").iterdir() if path.name.isdigit()]
    assert not [path for path in commands if mine in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


# When it can't


async def test_over_stdio_the_model_is_told_why_there_is_no_sandbox(
    held: HeldBack, tmp_path: Path, era: Era
) -> None:
    held.abandon()
    cache = {"UV_CACHE_DIR": str(tmp_path / "cache")}
    async with over_stdio(era, held.environment | NO_INDEX | cache) as client:
        for _ in range(2):  # and again
            result = await client.call_tool("execute_python", CODE)
            assert result.is_error
            assert "can't be installed" in text_of(result)
            assert "divingbell doctor" in text_of(result)


async def test_over_stdio_it_ends_with_its_client_and_the_status_says_why(
    held: HeldBack, tmp_path: Path
) -> None:
    held.abandon()
    cache = {"UV_CACHE_DIR": str(tmp_path / "cache")}
    async with started(environment=held.environment | NO_INDEX | cache) as process:
        await said(process, "no code can be run")
        assert process.stdin is not None
        process.stdin.close()
        assert await ended(process) == 3


async def test_over_http_those_who_wait_are_told_and_it_ends(
    held: HeldBack, tmp_path: Path
) -> None:
    cache = {"UV_CACHE_DIR": str(tmp_path / "cache")}
    http = ("--http", "--port", "0", "--no-token")
    async with started(*http, environment=held.environment | NO_INDEX | cache) as process:
        assert process.stderr is not None
        await said(process, "listening at")
        greeting = json.loads(await process.stderr.readuntil(b"\n}\n"))
        url = greeting["mcpServers"]["divingbell"]["url"]
        async with Client(url) as client:
            listener = Listener()
            running = asyncio.create_task(
                client.call_tool("execute_python", CODE, progress_callback=listener.on_progress)
            )
            await until(lambda: listener.progress, "it waits")
            held.abandon()
            result = await running
            assert result.is_error and "can't be installed" in text_of(result)
        await said(process, "can't be installed")
        assert await ended(process) == 3


WALLS = """
backend = "auto"
backend_order = ["docker"]
backend_minimum = "docker"
"""


async def test_where_no_wall_is_strong_enough_no_code_runs_and_the_status_says_so(
    tmp_path: Path,
) -> None:
    file = tmp_path / "divingbell.toml"
    file.write_text(WALLS)
    nowhere = {"DOCKER_HOST": f"unix://{tmp_path}/docker.sock"}
    async with started("--config", str(file), environment=nowhere) as process:
        await said(process, "no code can be run: none of the backends")
        assert process.stdin is not None
        process.stdin.close()
        assert await ended(process) == 3
    http = ("--http", "--port", "0", "--config", str(file))
    async with started(*http, environment=nowhere) as process:
        assert await ended(process) == 3


@pytest.mark.parametrize("transport", [(), ("--http", "--port", "0")], ids=["stdio", "http"])
@pytest.mark.parametrize(
    "text", ["backend = 'paper'", "timeout = 'long'", "[policy]\nrules = 3", "nonsense = 1"]
)
async def test_wrong_settings_end_it_at_once_though_its_client_stays(
    held: HeldBack, tmp_path: Path, transport: tuple[str, ...], text: str
) -> None:
    file = tmp_path / "divingbell.toml"
    file.write_text(text)
    async with started(*transport, "--config", str(file), environment=held.environment) as process:
        assert await ended(process) == 2
