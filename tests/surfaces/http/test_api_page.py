"""The examples of docs/api.md, run as they are written against one server."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.surfaces.auth import USUAL, Tokens, hash_of
from tests import real_servers
from tests.surfaces.http.serving import ANNE, EVENTS, Site, heard, served
from tests.waiting import PATIENCE

PAGE = (Path(__file__).parents[3] / "docs/api.md").read_text("utf-8")
COMMANDS = [
    command
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for command in re.findall(r"^curl (?:.*\\\n)*.*$", block, re.MULTILINE)
]
PROGRAMS = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
ADDRESS = "localhost:8642"
ASKING = "from servers.shop import complain\nprint(complain('loud'))"


@pytest.fixture(scope="module")
async def site() -> AsyncIterator[Site]:
    command, arguments = real_servers.fixture("workshop")
    async with (
        Divingbell(
            pool=1,
            servers={"shop": {"command": command, "args": arguments}},
            policy={"rules": [{"tools": ["shop.complain"], "action": "ask"}]},
        ) as bell,
        served(bell, Tokens({"anne": hash_of(ANNE)}, USUAL)) as site,
    ):
        yield site


async def ran(folder: Path, *command: str) -> str:
    """Run a program to its end; return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, "TOKEN": ANNE},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE * 3):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()


async def shown(site: Site, folder: Path, command: str) -> str:
    """Run a command of the page. A refusal makes it fail, too."""
    real_servers.need_program("curl")
    here = command.replace(ADDRESS, f"127.0.0.1:{site.port}")
    return await ran(folder, "bash", "-c", here.replace("curl -", "curl --fail-with-body -", 1))


async def test_every_command_but_an_answer_runs_in_order(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("depth\n12\n")
    told = [await shown(site, tmp_path, each) for each in COMMANDS if "approvals/" not in each]
    assert '"42"' in told[0] and "event: done" in told[1] and '"2"' in told[2]
    assert told[-1] == "depth\n12\n"


async def test_a_question_is_answered_by_the_command(site: Site, tmp_path: Path) -> None:
    [command] = [each for each in COMMANDS if "approvals/7" in each]
    where = "/api/v1/sessions/analysis/execute"
    async with (
        site.client() as client,
        client.stream("POST", where, json={"code": ASKING}, headers=EVENTS) as answer,
    ):
        async for event in heard(answer):
            if event.name == "approval":
                number = event.data["approval"]["id"]
                await shown(site, tmp_path, command.replace("/7", f"/{number}"))
            last = event
    assert last.name == "done" and last.data["result"]["status"] == "ok"


@pytest.mark.parametrize("program", PROGRAMS)
async def test_programs_print_what_they_say(site: Site, tmp_path: Path, program: str) -> None:
    text = program.replace(ADDRESS, f"127.0.0.1:{site.port}").replace("TOKEN", repr(ANNE))
    printed = await ran(tmp_path, sys.executable, "-c", text)
    assert printed.splitlines() == re.findall(r"^\s*# → (.*)$", program, re.MULTILINE)
