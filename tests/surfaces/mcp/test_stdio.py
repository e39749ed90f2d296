"""`divingbell serve` over stdin and stdout, as a process of its own."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters

from divingbell.surfaces.mcp import stdio
from tests.surfaces.mcp.conftest import Era, text_of
from tests.surfaces.mcp.serving import COMMAND, QUIET, fixture, settings
from tests.surfaces.mcp.test_http import HANDSHAKE
from tests.waiting import PATIENCE, until

NOISE = "import sys; print('out'); print('err', file=sys.stderr); sys.__stdout__.write('raw\\n')"


def _parameters(file: Path) -> StdioServerParameters:
    return StdioServerParameters(
        command=COMMAND, args=["serve", "--config", str(file)], env={**os.environ, **QUIET}
    )


async def test_a_client_runs_code_that_calls_a_tool(tmp_path: Path, era: Era) -> None:
    file = settings(tmp_path, {"shop": fixture("workshop")})
    async with Client(_parameters(file), mode=era) as client:
        code = "from servers.shop import echo\nprint(echo(text='hello'))"
        assert "hello" in text_of(await client.call_tool("execute_python", {"code": code}))


class Line:
    """The process, spoken to by hand."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._number = 1

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.send(request)
        return await self.answer(self._number)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def answer(self, number: int) -> dict[str, Any]:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE * 3):  # the first one waits for the sandbox
            while True:
                # Every line has to be a message: json.loads says if one is not.
                message: dict[str, Any] = json.loads(await self.process.stdout.readline())
                if message.get("id") == number:
                    return message


@pytest.fixture
async def line(tmp_path: Path) -> Any:
    file = settings(tmp_path, {"shop": fixture("workshop")})
    process = await asyncio.create_subprocess_exec(
        COMMAND, "serve", "--config", str(file), "--verbose",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL, limit=1 << 24, env={**os.environ, **QUIET},
    )  # fmt: skip
    line = Line(process)
    line.send(HANDSHAKE)
    await line.answer(1)
    line.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    yield line
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _run(line: Line, code: str) -> dict[str, Any]:
    answer = await line.call("tools/call", name="execute_python", arguments={"code": code})
    result: dict[str, Any] = answer["result"]
    return result


def _below(pid: int) -> list[int]:
    """The processes below one, however deep."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if parent == pid:
                found += [int(entry.name), *_below(int(entry.name))]
    return found


def _alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


async def test_nothing_but_messages_comes_and_nothing_else_does_harm(line: Line) -> None:
    assert (await _run(line, NOISE))["structuredContent"]["status"] == "ok"
    assert line.process.stdin is not None
    line.process.stdin.write(b"\n{]\n\xff\xfe\n" + b"[" * 100_000 + b"\n")
    assert (await line.call("ping"))["result"] == {}


@pytest.mark.parametrize(
    "code", ["'z' * 200_000", "print('z' * 200_000)", "for _ in range(20): display('z' * 10_000)"]
)
async def test_a_model_reads_64_kilobytes_of_a_cell_whatever_shows_them(
    line: Line, code: str
) -> None:
    result = await _run(line, code)
    text, note = (block["text"] for block in result["content"])
    assert 60_000 < len(text) < 64 * 1024 + 100
    where = note.removeprefix("[the output is cut to 64 KB; all of it is in ").removesuffix("]")
    whole = await _run(line, f"len(open('{where}').read()) > 200_000")
    assert whole["structuredContent"]["value"] is True


async def test_it_ends_when_its_client_does_and_leaves_nothing(line: Line) -> None:
    await _run(line, "from servers.shop import echo; echo(text='x')")
    below = _below(line.process.pid)
    assert len(below) >= 2, "a sandbox and a server"
    assert line.process.stdin is not None
    line.process.stdin.close()
    async with asyncio.timeout(PATIENCE):
        assert await line.process.wait() == 0
    await until(lambda: not _alive(below), "all processes are gone")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=str)
async def test_it_ends_when_told_to_even_in_the_middle_of_a_cell(
    line: Line, number: signal.Signals
) -> None:
    await _run(line, "import time")
    below = _below(line.process.pid)
    arguments = {"code": "time.sleep(300)"}
    params = {"name": "execute_python", "arguments": arguments}
    line.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params})
    await line.call("ping")
    line.process.send_signal(number)
    async with asyncio.timeout(PATIENCE):
        assert await line.process.wait() in (130, 143)
    await until(lambda: not _alive(below), "all processes are gone")


class Reader:
    """The client's end of what messages are written to, read when it is wanted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def bytes(self, count: int) -> bytes:
        read = b""
        while len(read) < count:
            read += os.read(self._descriptor, count - len(read))
        return read


@pytest.fixture(params=["pipe", "socket", "file"])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Reader, int]]:
    """Where a client reads, and where messages to it are written."""
    if request.param == "pipe":
        reading, writing = os.pipe()
    elif request.param == "socket":
        reading, writing = (each.detach() for each in socket.socketpair())
    else:
        writing = os.open(tmp_path / "messages", os.O_WRONLY | os.O_CREAT)
        reading = os.open(tmp_path / "messages", os.O_RDONLY)
    yield Reader(reading), writing
    os.close(reading)
    os.close(writing)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what was left to threads."""
    left: list[int] = []
    run = anyio.to_thread.run_sync

    async def noted(work: Any, *given: Any) -> None:
        left.append(len(given[-1]))
        await run(work, *given)

    monkeypatch.setattr(anyio.to_thread, "run_sync", noted)
    return left


async def test_a_short_message_waits_for_no_thread(
    ends: tuple[Reader, int], threads: list[int], request: pytest.FixtureRequest
) -> None:
    reader, descriptor = ends
    with contextlib.closing(stdio._Messages(descriptor)) as messages:
        await messages.write("short, and é\n")
        await messages.flush()
    assert reader.bytes(14).decode() == "short, and é\n"
    assert not threads or "file" in request.node.name


async def test_messages_for_which_a_client_has_no_room_come_whole_and_in_order(
    ends: tuple[Reader, int], threads: list[int]
) -> None:
    reader, descriptor = ends
    sizes = [5_000_000, 10, 3_000, *[4_000] * 500]
    expected = [str(number % 10) * size + "\n" for number, size in enumerate(sizes)]

    async def write() -> None:
        with contextlib.closing(stdio._Messages(descriptor)) as messages:
            for each in expected:
                await messages.write(each)

    async with asyncio.TaskGroup() as tasks, asyncio.timeout(PATIENCE):
        tasks.create_task(write())
        await until(lambda: threads, "something is too much for now")
        read = await asyncio.to_thread(reader.bytes, sum(map(len, expected)))
    assert read.decode() == "".join(expected)
