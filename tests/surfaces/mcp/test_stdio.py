"""`divingbell serve` over stdin and stdout, as a process of its own."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

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
