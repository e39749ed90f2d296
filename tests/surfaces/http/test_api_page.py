"""The examples of docs/api.md, run as they are written against one server: every operation, by curl
and from Python."""

import ast
import asyncio
import contextlib
import io
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.agent.scripted import Says
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from divingbell.surfaces.http.application import OPERATIONS
from tests import real_servers
from tests.skills.samples import made
from tests.surfaces.http.serving import ANNE, Site, Talking, heard, served
from tests.waiting import PATIENCE, until

PAGE = (Path(__file__).parents[3] / "docs/api.md").read_text("utf-8")
SECTIONS = {
    section.partition("\n")[0]: section for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)
}
ADDRESS = "localhost:8642"
API = "/api/v1"
ASKING = "from servers.shop import complain\nprint(complain('loud'))"


def _blocks(language: str, section: str) -> str:
    return "".join(re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL))


def _commands(section: str) -> list[str]:
    return [each for each in _blocks("sh", section).splitlines() if each.startswith("curl ")]


def _program(section: str) -> str:
    found = _blocks("py", section)
    return "" if "asyncio.run" in found else found


SETTING_UP = _program(SECTIONS["How to ask"])
COMMANDS = [each for section in SECTIONS.values() for each in _commands(section)]
PROGRAMS = {
    name: program
    for name, section in SECTIONS.items()
    if (program := _program(section)) and program != SETTING_UP
}


# Each operation is there, by both


def _operation(method: str, path: str) -> str:
    """The operation that answers a path, as the tables of the page name it."""
    for each in OPERATIONS:
        pattern = re.sub(r"\\{(\w+)(:path)?\\}", r"[^/]+", re.escape(each.path))
        if each.method == method and re.fullmatch(pattern, path):
            return f"{method} {each.path}"
    raise AssertionError(f"the page asks for {method} {path}, which there is not")


def _of_command(command: str) -> str:
    [path] = re.findall(r"\$BELL(/[^\s\"?]*)", command)
    given = re.search(r" -X (\w+)", command)
    if given:
        return _operation(given[1], path)
    if " -T " in command:
        return _operation("PUT", path)
    return _operation("POST" if " --json " in command else "GET", path)


def _of_program(program: str) -> set[str]:
    """The operations that a program asks for."""
    found = set[str]()
    for node in ast.walk(ast.parse(program)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "api"):
            continue
        words = [re.sub(r"\{.*?\}", "x", ast.unparse(each).strip("f'\"")) for each in node.args]
        method = words[0] if node.func.attr == "stream" else node.func.attr.upper()
        found.add(_operation(method, words[-1]))
    return found


def test_every_operation_has_its_command_and_its_line_of_python() -> None:
    every = {f"{each.method} {each.path}" for each in OPERATIONS}
    assert {_of_command(each) for each in COMMANDS} == every
    assert {name for program in PROGRAMS.values() for name in _of_program(program)} == every


# They run


@pytest.fixture(scope="module")
def script() -> Talking:
    return Talking()


@pytest.fixture
async def site(
    script: Talking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    command, arguments = real_servers.fixture("workshop")
    async with Divingbell(
        pool=1,
        preload=[],
        audit="on",
        audit_log={"folder": str(tmp_path / "log"), "heads": str(tmp_path / "heads")},
        skills="on",
        agent={"mode": "code"},
        servers={"shop": {"command": command, "args": arguments}},
        policy={"rules": [{"tools": ["shop.complain"], "action": "ask"}]},
    ) as bell:
        for answer in (1, 2):
            await bell.skills.add(made(code=f"def run():\n    return {answer}\n"), user="anne")
        tokens = Tokens({"anne": hash_of(ANNE)}, frozenset(SCOPES))
        async with served(bell, tokens, script.made) as site:
            yield site


@contextlib.asynccontextmanager
async def asking(client: httpx2.AsyncClient) -> AsyncIterator[str]:
    """A call that waits for a person, until it is answered; its number."""
    path = f"{API}/sessions/asking/execute"
    running = asyncio.create_task(client.post(path, json={"code": ASKING}))
    found: list[Any] = []

    async def waits() -> bool:
        found[:] = (await client.get(f"{API}/approvals")).json()["items"]
        return bool(found)

    await until(waits, "a call waits for a person")
    yield found[0]["id"]
    assert (await running).status_code == 200


@contextlib.asynccontextmanager
async def asked_in(client: httpx2.AsyncClient, talk: str, script: Talking) -> AsyncIterator[str]:
    """A conversation whose code waits for a person, until it is answered; the question's id."""
    script.lines[:] = [Says("Let me see.", ASKING), Says("It was said.")]
    where = f"{API}/conversations/{talk}/messages"
    async with client.stream("POST", where, json={"text": "Complain"}) as answer:
        events = heard(answer)
        async for event in events:
            if event.name == "approval":
                break
        yield event.data["id"]
        assert [each.name async for each in events][-1] == "done"


async def ran(folder: Path, command: str, **variables: str) -> str:
    """Run a command to its end; what never ends, until it has said something."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", f"exec {command.replace('curl ', 'curl --fail-with-body ', 1)}",
        cwd=folder, env=os.environ | variables,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE * 3):
        if "$BELL/events" in command:
            told = await process.stdout.readuntil(b"\n\n")
            process.terminate()
            await process.communicate()
            return told.decode()
        out, errors = await process.communicate()
    assert process.returncode == 0, (command, out.decode(), errors.decode())
    return out.decode()


async def test_every_command_runs_in_order(site: Site, tmp_path: Path, script: Talking) -> None:
    real_servers.need_program("curl")
    (tmp_path / "data.csv").write_text("depth\n12\n")
    given = {"BELL": f"{site.url}{API}", "AUTH": f"Authorization: Bearer {ANNE}"}
    told = dict[str, str]()
    async with site.client() as client:
        given["TALK"] = (await client.post(f"{API}/conversations", json={})).json()["id"]
        for command in COMMANDS:
            script.lines[:] = [Says("It is 42.")]
            if "$APPROVAL" in command:
                async with asking(client) as number:
                    told[command] = await ran(tmp_path, command, **given, APPROVAL=number)
            elif "$QUESTION" in command:
                async with asked_in(client, given["TALK"], script) as question:
                    told[command] = await ran(tmp_path, command, **given, QUESTION=question)
            else:
                if "$EXECUTION" in command and "EXECUTION" not in given:
                    listed = (await client.get(f"{API}/executions?session=analysis")).json()
                    given["EXECUTION"] = listed["items"][0]["id"]
                told[command] = await ran(tmp_path, command, **given)
    for words, found in (
        ("x = 40 + 2", '"42"'), ("print(x)", "event: done"), ("1 + 1", '"2"'),
        ("events -H", "event: "), ("Range", "depth\n12\n"), ("idle_timeout", '"expires_at":"20'),
        ("messages", "It is 42."), ("rollback", '"version":1'), ("$BELL/events", "event: hello"),
        ("detail_level", "shop.complain"), ("kind=execution.ended", '"user":"anne"'),
        ("reveal", "To [EMAIL_482715]."), ("days=7", '"executions":'),
    ):  # fmt: skip
        answers = [text for command, text in told.items() if words in command]
        assert answers and all(found in text for text in answers), (words, answers)


@pytest.mark.parametrize("name", PROGRAMS)
async def test_programs_print_what_they_say(site: Site, script: Talking, name: str) -> None:
    script.lines[:] = [Says("It is 42.")]
    held: dict[str, Any] = {}
    exec(SETTING_UP.replace(ADDRESS, f"127.0.0.1:{site.port}").replace("…", ANNE), held)
    program, printed = PROGRAMS[name], io.StringIO()

    def run() -> None:
        with contextlib.redirect_stdout(printed), held["api"]:
            exec(compile(program, name, "exec"), held)

    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(site.client())
        if name != "Running code":  # what the first example leaves behind
            path = f"{API}/sessions/analysis/execute"
            await client.post(path, json={"code": "x = 42; print(x)"})
        if name == "What was done":
            written = {"kind": "execution.ended"}

            async def is_written() -> bool:
                found = await client.get(f"{API}/audit", params=written)
                return bool(found.json()["items"])

            await until(is_written, "the audit log has it")
        if name == "Questions about calls":
            await stack.enter_async_context(asking(client))
        await asyncio.wait_for(asyncio.to_thread(run), PATIENCE * 3)
    shown = re.findall(r"^\s*# → (.*)$", program, re.MULTILINE)
    assert printed.getvalue().splitlines() == shown
