"""Every text of a hostile server, through every way out: none hides anything.

The server puts hidden characters and terminal escapes into every text that the protocol has.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from divingbell import Divingbell
from divingbell.promises.check.exits import Ear
from divingbell.promises.check.tool_rig import SERVER
from divingbell.surfaces.mcp.server import Surface
from divingbell.text import is_hiding
from tests.surfaces.mcp.conftest import Era, text_of
from tests.surfaces.mcp.serving import COMMAND, QUIET, serving, settings
from tests.waiting import PATIENCE

WORDS = ("link", "said", "done", "choice", "argument", "title", "value", "one")
ENTRY = {"command": sys.executable, "args": ["-I", str(SERVER)], "direct": ["*"]}


def judge(ear: Ear) -> None:
    heard = json.dumps(ear.heard, default=str)
    assert [word for word in WORDS if word not in heard] == []
    assert ear.hidden() == []
    [question] = ear.asked
    assert question.message.startswith("hostile asks: Update.")
    assert "\n> Divingbell asks" in question.message
    [field] = question.requested_schema["properties"].values()
    assert field["title"].startswith("hostile: Divingbell needs your password")


async def test_within_one_process_in_both_eras(era: Era) -> None:
    async with Divingbell(pool=0, mode="hybrid", servers={"hostile": ENTRY}) as bell:
        surface, ear = Surface(bell), Ear()
        async with Client(surface.server, mode=era, **ear.options()) as client:
            await ear.listen(client)
        await surface.close()
    judge(ear)


async def test_over_stdio(tmp_path: Path) -> None:
    file = settings(tmp_path, {"hostile": ENTRY}, "hybrid")
    parameters = StdioServerParameters(
        command=COMMAND, args=["serve", "--config", str(file)], env={**os.environ, **QUIET}
    )
    ear = Ear()
    async with Client(parameters, mode="legacy", **ear.options()) as client:
        await ear.listen(client)
    judge(ear)


async def test_over_http(tmp_path: Path) -> None:
    file, ear = settings(tmp_path, {"hostile": ENTRY}, "hybrid"), Ear()
    async with serving("--config", str(file)) as served:
        headers = served.greeting["headers"]
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as inner:
            transport = streamable_http_client(served.url, http_client=inner)
            async with Client(transport, mode="legacy", **ear.options()) as client:
                await ear.listen(client)
    judge(ear)


async def test_names_of_files_in_the_workspace(era: Era) -> None:
    name = "a\u202eb\U000e0041\x1b[31m.txt"
    async with Divingbell(pool=0) as bell:
        surface = Surface(bell)
        async with Client(surface.server, mode=era, cache=None) as client:
            code = f"open({name!r}, 'w').write('content')"
            await client.call_tool("execute_python", {"code": code})
            [listed] = (await client.list_resources()).resources
            assert not is_hiding(listed.model_dump_json()) and listed.name.startswith("a\\u202eb")
            read = await client.read_resource(listed.uri)
            assert "content" in read.model_dump_json()
        await surface.close()


async def test_progress_and_questions_of_calls_from_code(era: Era) -> None:
    async with Divingbell(pool=0, servers={"hostile": ENTRY}) as bell:
        surface, ear = Surface(bell), Ear()
        async with Client(surface.server, mode=era, **ear.options()) as client:
            code = "servers.hostile.murmur(); servers.hostile.ask()\nprint('\\x1b[2J\\u202edone')"
            result = await client.call_tool(
                "execute_python", {"code": code}, progress_callback=ear.on_progress
            )
        await surface.close()
    assert "\u202e" in text_of(result), "what code prints is its own"
    assert ear.hidden() == [] and len(ear.asked) == 1


@pytest.mark.parametrize("command", ["servers", "login"])
async def test_on_the_command_line(tmp_path: Path, command: str) -> None:
    broken = {"command": sys.executable, "args": ["-c", BABBLE]}
    file = settings(tmp_path, {"broken": broken, "hostile": ENTRY})
    arguments = ["servers"] if command == "servers" else ["login", "bro\u202e\u3164ken"]
    process = await asyncio.create_subprocess_exec(
        COMMAND, *arguments, "--config", str(file),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **QUIET, "XDG_CACHE_HOME": str(tmp_path)},
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE * 3):
        said = (await process.communicate())[0].decode()
    assert "broken" in said or "u202e" in said
    assert not is_hiding(said), ascii(said)
    for log in tmp_path.rglob("*.log"):
        assert not is_hiding(log.read_text())


BABBLE = r"import sys; sys.exit('last words \u202e \u3164 \U000e0041 \x1b]0;title\x07 \x1b[2J')"
