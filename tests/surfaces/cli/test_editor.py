"""`chat --acp` with the protocol's own client over stdin and stdout; the model is a script."""

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema

from divingbell.surfaces.cli import editor
from tests import real_servers
from tests.agent.provider_server import ProviderServer, Say, serving_beside, status
from tests.datasets import making
from tests.surfaces.cli.command import COMMAND, PATIENCE, environment
from tests.waiting import until

pytestmark = pytest.mark.anyio
AGENT = Path(__file__).with_name("scripted_editor_agent.py")
ROOT = Path(__file__).parents[3]
Lines = list[tuple[str, Any]]
NOTED = "\n\n["


@dataclass
class Editor:
    """The editor's side: takes down what it is told, and answers as it was told to."""

    answer: str = "yes"
    updates: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> schema.RequestPermissionResponse:
        self.asked.append((tool_call, options))
        if self.answer == "cancelled":
            denied = schema.DeniedOutcome(outcome="cancelled")
            return schema.RequestPermissionResponse(outcome=denied)
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.answer)
        return schema.RequestPermissionResponse(outcome=chosen)

    def on_connect(self, conn: Any) -> None:
        """Keep nothing."""

    def text(self, kind: str = "agent_message_chunk") -> str:
        """What was said, without what the model has not said."""
        texts = [each.content.text for each in self.updates if each.session_update == kind]
        return "".join(text for text in texts if not text.startswith(NOTED))

    def notes(self) -> str:
        texts = [getattr(getattr(each, "content", None), "text", "") for each in self.updates]
        return "".join(text for text in texts if text.startswith(NOTED))

    def calls(self) -> dict[str, list[Any]]:
        """The updates of each call of a tool."""
        found: dict[str, list[Any]] = {}
        for update in self.updates:
            if update.session_update in ("tool_call", "tool_call_update"):
                found.setdefault(update.tool_call_id, []).append(update)
        return found


@contextlib.asynccontextmanager
async def connected(
    editor: Editor, lines: Lines, folder: str = "", *files: str, **settings: Any
) -> AsyncIterator[Any]:
    arguments = (str(AGENT), folder, json.dumps(lines), json.dumps(settings), *files)
    client: Any = editor
    async with (
        asyncio.timeout(PATIENCE),
        acp.spawn_agent_process(
            client,
            sys.executable,
            *arguments,
            env=environment(PYTHONPATH=str(ROOT)),
            transport_kwargs={"limit": 50 << 20},
        ) as (agent, _),
    ):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield agent


async def begun(agent: Any, tmp_path: Path) -> str:
    return str((await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id)


async def ask(agent: Any, session: str, *blocks: Any) -> str:
    given = [acp.text_block(each) if isinstance(each, str) else each for each in blocks]
    return str((await agent.prompt(session_id=session, prompt=given)).stop_reason)


async def test_words_are_chunks_and_code_is_a_call_of_a_tool(tmp_path: Path) -> None:
    editor = Editor()
    code = "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nprint(6 * 7)"
    async with connected(editor, [("Let me see.", code), ("It is 42.", None)]) as agent:
        session = await begun(agent, tmp_path)
        assert await ask(agent, session, "what is it?") == "end_turn"
    assert editor.text() == "Let me see.It is 42."
    [[start, *more]] = editor.calls().values()
    assert (start.kind, start.status) == ("execute", "pending")
    statuses = [update.status for update in more if update.status]
    assert statuses == ["in_progress", "completed"]
    written, output, image = (content.content for content in more[-1].content)
    assert written.text == f"```python\n{code}\n```"
    assert "42" in output.text and output.text.startswith("```text\n")
    assert image.mime_type == "image/png"
    assert [each for each in editor.updates if each.session_update == "usage_update"]


async def test_a_cell_that_fails_is_a_call_that_failed(tmp_path: Path) -> None:
    editor = Editor()
    async with connected(editor, [("", "1 / 0"), ("Sorry.", None)]) as agent:
        await ask(agent, await begun(agent, tmp_path), "divide")
    [updates] = editor.calls().values()
    assert updates[-1].status == "failed"
    assert "ZeroDivisionError" in updates[-1].content[1].content.text


async def test_cancelling_stops_the_cell_and_the_conversation_goes_on(tmp_path: Path) -> None:
    editor = Editor()
    endless = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    async with connected(editor, [("", endless), ("Here.", None)]) as agent:
        session = await begun(agent, tmp_path)
        asking = asyncio.create_task(ask(agent, session, "go"))
        await until(lambda: "begun" in str(editor.updates), "the cell runs")
        with pytest.raises(acp.RequestError, match="under way"):
            await ask(agent, session, "and this?")
        await agent.cancel(session_id=session)
        assert await asking == "cancelled"
        await until(lambda: editor.calls().popitem()[1][-1].status == "failed", "it is told")
        assert await ask(agent, session, "are you there?") == "end_turn"
    assert editor.text() == "Here."


def _shop(mode: str) -> dict[str, Any]:
    command, arguments = real_servers.fixture("workshop")
    rules = [{"tools": ["shop.complain"], "action": "ask", "reason": "it is loud"}]
    return {
        "servers": {"shop": {"command": command, "args": arguments}},
        "policy": {"rules": rules},
        "agent": {"mode": mode},
    }


@pytest.mark.parametrize("answer", ["yes", "session", "no", "cancelled", "nonsense"])
async def test_approvals_are_permission_requests(tmp_path: Path, answer: str) -> None:
    editor = Editor(answer)
    code = "from servers.shop import complain\nprint(complain('ouch'))\nprint(complain('again'))"
    async with connected(editor, [("", code), ("ok", None)], "", **_shop("code")) as agent:
        await ask(agent, await begun(agent, tmp_path), "complain")
    [*_, ended] = next(iter(editor.calls().values()))
    allowed = answer in ("yes", "session")
    assert ended.status == ("completed" if allowed else "failed")
    assert len(editor.asked) == (2 if answer == "yes" else 1)
    call, options = editor.asked[0]
    assert call.title == "The code wants to call shop.complain."
    assert "ouch" in call.content[0].content.text and "it is loud" in call.content[0].content.text
    assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_helpers_are_calls_too_and_the_person_is_asked_for_theirs(
    tmp_path: Path, answer: str
) -> None:
    editor = Editor(answer)
    code = "print(delegate('Complain loudly.', tools=['shop.complain']))"
    complaining = "from servers.shop import complain\nresult = complain('ouch')"
    lines: Lines = [("", code), ("", complaining), ("did it", None), ("ok", None)]
    if answer == "no":  # what the person refuses is an error in the helper's code
        lines[1] = (
            "",
            f"try:\n    {complaining.replace(chr(10), chr(10) + '    ')}\n"
            "except ToolError as error:\n    failure = str(error)",
        )
    async with connected(editor, lines, "", **_shop("code")) as agent:
        await ask(agent, await begun(agent, tmp_path), "complain")
    [(call, _)] = editor.asked
    assert call.title == "Helper 1: The code wants to call shop.complain."
    assert "ouch" in call.content[0].content.text
    [cell, [start, ended]] = editor.calls().values()
    assert start.title == "Helper 1: Complain loudly." and start.status == "in_progress"
    assert "with shop.complain and at most" in start.content[0].content.text
    assert ended.status == ("completed" if answer == "yes" else "failed")
    assert "2 requests" in ended.content[0].content.text and "tokens read" in str(ended)
    assert cell[-1].status == ended.status


LOUD = {"type": "boolean", "title": "Is it loud?"}
SIZES = {"type": "string", "enum": ["small", "large"]}
QUESTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a yes": ({"loud": LOUD}, "answer-0", '{"action": "accept", "content": {"loud": true}}'),
    "a no": ({"loud": LOUD}, "answer-1", '{"action": "accept", "content": {"loud": false}}'),
    "one of some": ({"size": SIZES}, "answer-1", '"content": {"size": "large"}'),
    "refused": ({"loud": LOUD}, "no", '{"action": "decline"}'),
    "cancelled": ({"loud": LOUD}, "cancelled", '{"action": "cancel"}'),
    "no such option": ({"loud": LOUD}, "answer-7", '{"action": "decline"}'),
    "what takes typing": ({"name": {"type": "string"}}, "answer-0", '{"action": "decline"}'),
    "two at once": ({"loud": LOUD, "size": SIZES}, "answer-0", '{"action": "decline"}'),
}


@pytest.mark.parametrize("question", QUESTIONS)
async def test_what_servers_ask_is_put_to_the_person(tmp_path: Path, question: str) -> None:
    fields, answer, expected = QUESTIONS[question]
    editor = Editor(answer)
    form = {"type": "object", "properties": fields, "required": list(fields)}
    command, arguments = real_servers.fixture("asking")
    servers = {"asking": {"command": command, "args": [*arguments, json.dumps(form)]}}
    code = "from servers.asking import work\nprint(work())"
    settings: dict[str, Any] = {"servers": servers, "agent": {"mode": "code"}}
    async with connected(editor, [("", code), ("ok", None)], "", **settings) as agent:
        await ask(agent, await begun(agent, tmp_path), "go")
    [*_, ended] = next(iter(editor.calls().values()))
    assert expected in ended.content[1].content.text
    if question in ("what takes typing", "two at once"):
        assert not editor.asked
        assert "declined: asking asks: Who are you?" in editor.notes()
    else:
        [(call, options)] = editor.asked
        assert "asking asks: Who are you?" in call.content[0].content.text
        assert options[-1].kind == "reject_once"


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_tools_that_the_model_calls_itself_are_calls_too(tmp_path: Path, answer: str) -> None:
    editor = Editor(answer)
    lines: Lines = [("", ["shop__complain", {"text": "ouch"}]), ("ok", None)]
    async with connected(editor, lines, "", **_shop("direct")) as agent:
        await ask(agent, await begun(agent, tmp_path), "complain")
    [[start, ended]] = editor.calls().values()
    assert start.title == "shop__complain" and "ouch" in start.content[0].content.text
    assert ended.status == ("completed" if answer == "yes" else "failed")
    assert [call.title for call, _ in editor.asked] == ["The code wants to call shop.complain."]


async def test_code_that_could_not_be_run_is_a_call_that_failed(tmp_path: Path) -> None:
    editor = Editor()
    lines: Lines = [("", ["execute_python", {"kode": "1"}]), ("", ["no_such", {}]), ("ok", None)]
    async with connected(editor, lines) as agent:
        await ask(agent, await begun(agent, tmp_path), "go")
    assert all(updates[-1].status == "failed" for updates in editor.calls().values())
    assert "nothing was run" in editor.notes() and "no_such" in editor.notes()


async def test_a_conversation_is_listed_and_loaded_with_all_that_was_said(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    code = "open('f', 'w').write('kept')\nn = 41\nprint(n + 1)"
    async with connected(Editor(), [("Let me see.", code), ("It is 42.", None)], kept) as agent:
        session = await begun(agent, tmp_path)
        await ask(agent, session, "what is it?")
    editor = Editor()
    async with connected(editor, [("", "print(open('f').read())"), ("ok", None)], kept) as agent:
        [info] = (await agent.list_sessions()).sessions
        assert (info.session_id, info.title) == (session, "what is it?")
        await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert editor.text("user_message_chunk") == "what is it?"
        assert editor.text() == "Let me see.It is 42."
        assert "n (int), made by cell 1: n = 41" in editor.notes()
        [[call]] = editor.calls().values()
        assert call.status == "completed" and "42" in call.content[1].content.text
        await ask(agent, session, "and the file?")
    *_, [*_, ended] = editor.calls().values()
    assert "kept" in ended.content[1].content.text
    assert len(editor.calls()) == 2, "each call has a name of its own"


async def test_a_loaded_conversation_goes_on_in_its_mode(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept")
    echo: Lines = [("", ["shop__echo", {"text": "again"}]), ("ok", None)]
    async with connected(Editor(), [("Hello.", None)], kept, **_shop("direct")) as agent:
        session = await begun(agent, tmp_path)
        await ask(agent, session, "hello")
    editor, data = Editor(), tmp_path / "data.csv"
    data.write_text("a\n1\n")  # for which `auto` takes code
    async with connected(editor, echo, kept, str(data), **_shop("auto")) as agent:
        await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        await ask(agent, session, "and now?")
    [[_, ended]] = editor.calls().values()
    assert ended.status == "completed" and "again" in ended.content[-1].content.text


async def test_a_conversation_that_is_not_there_is_told(tmp_path: Path) -> None:
    async with connected(Editor(), [], str(tmp_path / "kept")) as agent:
        with pytest.raises(acp.RequestError, match="there is no conversation"):
            await agent.load_session(cwd="/", session_id="nothing", mcp_servers=[])
        with pytest.raises(acp.RequestError, match="no such conversation open"):
            await ask(agent, "nothing", "hello")


async def test_without_keeping_nothing_can_be_loaded(tmp_path: Path) -> None:
    async with connected(Editor(), [("ok", None)]) as agent:
        told = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert not told.agent_capabilities.load_session
        session = await begun(agent, tmp_path)
        await ask(agent, session, "hello")
        with pytest.raises(acp.RequestError, match="not kept"):
            await agent.load_session(cwd="/", session_id=session, mcp_servers=[])
    assert not list(tmp_path.iterdir())


async def test_what_is_attached_is_in_the_workspace(tmp_path: Path) -> None:
    given, linked = tmp_path / "given.txt", tmp_path / "li nked.txt"
    given.write_text("of the command line")
    linked.write_text("a link")
    embedded = acp.resource_block(acp.embedded_text_resource("file:///x/notes.md", "some notes"))
    link = acp.resource_link_block("li nked.txt", linked.as_uri())
    elsewhere = acp.resource_link_block("page", "https://example.org/page")
    code = "import os\nfor name in sorted(os.listdir()): print(name, open(name).read(), sep=': ')"
    editor = Editor()
    async with connected(editor, [("", code), ("ok", None)], "", str(given)) as agent:
        await ask(agent, await begun(agent, tmp_path), "look", embedded, link, elsewhere)
    [*_, ended] = next(iter(editor.calls().values()))
    output = ended.content[1].content.text
    assert "given.txt: of the command line\nli nked.txt: a link\nnotes.md: some notes" in output


async def test_a_model_that_fails_is_an_error_with_its_words(tmp_path: Path) -> None:
    async with connected(Editor(), [("one", None)]) as agent:
        session = await begun(agent, tmp_path)
        await ask(agent, session, "first")
        with pytest.raises(acp.RequestError, match="the script has no more lines"):
            await ask(agent, session, "second")


async def test_tokens_stay_tokens_in_an_editor(tmp_path: Path) -> None:
    editor = Editor()
    code = "print('anna.lindqvist' + '@example.org')"
    lines: Lines = [("", code), ("ok", None)]
    async with connected(editor, lines, privacy="personal") as agent:
        await ask(agent, await begun(agent, tmp_path), "who?")
    [*_, ended] = next(iter(editor.calls().values()))
    assert "[EMAIL_" in ended.content[1].content.text
    assert "anna.lindqvist@example.org" not in str(editor.updates)


async def test_escapes_of_terminals_do_not_reach_the_editor(tmp_path: Path) -> None:
    editor = Editor()
    lines: Lines = [("\x1b]0;title\x07words\u202e", "print('\\x1b[2Jhello')"), ("ok", None)]
    async with connected(editor, lines) as agent:
        await ask(agent, await begun(agent, tmp_path), "go")
    assert "words" in editor.text() and "hello" in str(editor.updates)
    assert "\x1b" not in "".join(update.model_dump_json() for update in editor.updates)
    assert "\\u001b" not in "".join(update.model_dump_json() for update in editor.updates)


@contextlib.asynccontextmanager
async def command(
    editor: Editor, provider: ProviderServer, folder: Path, *more: str
) -> AsyncIterator[Any]:
    """The command itself, with a model over HTTP."""
    asked = ("--model", "openai-chat:local", "--base-url", f"{provider.url}/v1")
    client: Any = editor
    async with (
        asyncio.timeout(PATIENCE),
        acp.spawn_agent_process(
            client,
            str(COMMAND),
            *("chat", "--acp", *asked, *more),
            env=environment(XDG_DATA_HOME=str(folder / "data")),
            cwd=folder,
        ) as (agent, _),
    ):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield agent


async def test_the_command_talks_and_goes_on_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a\n1\n2\n")
    with serving_beside() as provider:
        code = "print(open('data.csv').read())"
        provider.says = [Say("Looking.", code, thinking="Rows first."), Say("Two rows.")]
        editor = Editor()
        async with command(editor, provider, tmp_path, "data.csv") as agent:
            session = await begun(agent, tmp_path)
            assert await ask(agent, session, "how many rows?") == "end_turn"
        assert editor.text() == "Looking.Two rows."
        assert editor.text("agent_thought_chunk") == "Rows first."
        provider.says = [Say("Still two.")]
        again = Editor()
        async with command(again, provider, tmp_path) as agent:
            await agent.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
            assert await ask(agent, session, "and now?") == "end_turn"
        assert "1 file back in /workspace" in again.notes()
        before, after = (json.loads(provider.bodies[place])["messages"] for place in (1, 2))
    assert after[: len(before)] == before, "the provider's cache holds"
    assert again.text().endswith("Still two.")


async def test_a_folder_is_told_of_once_and_its_tables_are_served(tmp_path: Path) -> None:
    folder = tmp_path / "flights"
    folder.mkdir()
    (folder / "delays.csv").write_text("a\n1\n2\n")
    making.readable(folder)
    code = "from servers.data import import_dataset\nprint(len(import_dataset('delays')), 'rows')"
    editor = Editor()
    with serving_beside() as provider:
        provider.says = [Say("", code), Say("Two."), Say("Yes.")]
        async with command(editor, provider, tmp_path, "flights", "--no-save") as agent:
            session = await begun(agent, tmp_path)
            await ask(agent, session, "how many?")
            await ask(agent, session, "sure?")
        last = json.loads(provider.bodies[-1])["messages"]
    asked = [str(message["content"]) for message in last if message["role"] == "user"]
    assert "/data/flights, read-only: delays.csv" in asked[0]
    assert "its tables are in servers.data" in asked[0] and "/data/flights" not in asked[1]
    [*_, ended] = next(iter(editor.calls().values()))
    assert "2 rows" in ended.content[1].content.text


async def test_a_key_that_is_wrong_is_told_in_words(tmp_path: Path) -> None:
    with serving_beside() as provider:
        provider.says = [status(401, '{"error": {"message": "bad key"}}')]
        async with command(Editor(), provider, tmp_path, "--no-save") as agent:
            session = await begun(agent, tmp_path)
            with pytest.raises(acp.RequestError, match="the key was not accepted") as raised:
                await ask(agent, session, "hello")
        assert raised.value.code == -32000
    assert not (tmp_path / "data" / "divingbell" / "conversations").exists()


def test_a_line_that_is_no_json_is_told_in_one_line() -> None:
    try:
        json.loads("hello")
    except ValueError:
        record = logging.LogRecord(
            "root", logging.ERROR, "", 1, "Error parsing JSON-RPC message", (), sys.exc_info()
        )
    assert editor._plain(record)
    assert logging.Formatter().format(record) == "a line of the editor is no JSON"
