"""Through the door: rules, approvals, questions, bound arguments, servers that come and go."""

import asyncio
import logging
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types
import pytest

import divingbell
from divingbell import ConfigError, Divingbell, Result, Session
from divingbell.gateway.policy.approvals import Approval
from divingbell.settings.servers import Server, UnusableServer
from tests import onnx_models
from tests.gateway.galley import ENTRY, PATH, galley
from tests.waiting import until


async def failure(session: Session, code: str) -> str:
    result = await session.run(code)
    assert result.status == "error" and result.error is not None, result
    return result.error.message


async def value(session: Session, code: str) -> Any:
    result = await session.run(code)
    assert result.status == "ok", result.error
    return result.value


class Person:
    """Answers every question in the same way, and remembers them."""

    def __init__(self, **content: str) -> None:
        self.asked: list[mcp_types.ElicitRequestParams] = []
        self._content = content

    async def elicit(self, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        self.asked.append(params)
        if not self._content:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=dict(self._content))


# Rules


async def test_what_is_denied_can_neither_be_called_nor_seen() -> None:
    policy = {"rules": [{"tools": ["galley.fail"], "action": "deny", "reason": "not today"}]}
    async with galley(policy) as (_, session):
        assert await failure(session, "call_mcp_tool('galley.fail', {'message': 'x'})") == (
            "galley.fail is denied by policy: not today"
        )
        code = "try:\n    call_mcp_tool('galley.fail', {})\nexcept ToolDenied as e: r = e.code\nr"
        assert await value(session, code) == "tool_denied"
        assert "galley.fail" not in await value(session, "list_mcp_tools()")
        assert (
            await value(session, "import os; 'fail.py' in os.listdir('/servers/galley')") is False
        )
        assert "denied" in await failure(session, "get_mcp_tool_details('galley.fail')")


async def test_arguments_decide_too() -> None:
    rule = {"tools": ["galley.echo"], "action": "deny", "when": {"text": "*secret*"}}
    async with galley({"rules": [rule]}) as (_, session):
        assert await value(session, "servers.galley.echo('open')") == "open"
        assert "denied" in await failure(session, "servers.galley.echo('a secret thing')")


async def test_rules_may_be_about_users() -> None:
    rules = [
        {"tools": ["galley.add"], "action": "allow", "users": ["bob"]},
        {"tools": ["galley.add"], "action": "deny"},
    ]
    async with galley({"rules": rules}) as (bell, session):
        assert "denied" in await failure(session, "call_mcp_tool('galley.add', {'a': 1, 'b': 1})")
        assert await value(session, "search_tools('add two numbers', limit=1)") != [
            {"name": "galley.add", "server": "galley"}
        ]
        async with bell.session(user="bob") as bobs:
            assert await value(bobs, "servers.galley.add(1, 1)") == 2


PRIVATE = {
    "rules": [
        {"tools": ["galley.add"], "action": "allow", "users": ["bob"]},
        {"tools": ["galley.add"], "action": "deny"},
    ]
}


async def test_a_tool_of_some_users_is_nowhere_for_the_others() -> None:
    async with galley(PRIVATE) as (_, session):
        files = "import pathlib, re\n[p.read_text() for p in pathlib.Path('/servers').rglob('*.*')]"
        for code in (
            f"{files} + dir(servers.galley)",
            "search_tools('add two numbers', 'full'), search_tools('', limit=100)",
            "list_mcp_tools()",
            "from servers.galley import *\nsorted(globals())",
        ):
            assert not re.search(r"\badd\b|Add two", str(await value(session, code))), code
        for code in (
            "from servers.galley import add",
            "import servers.galley.add",
            "servers.galley.add",
            "servers.galley.ad",
        ):
            assert "did you mean" not in await failure(session, code), code
        hint = await failure(session, "call_mcp_tool('galley.addd')")
        assert "galley.add" not in hint.replace("galley.addd", "")
        for code in (
            "get_mcp_tool_details('galley.add')",
            "call_mcp_tool('galley.add', {'a': 'x'})",
        ):
            assert "denied by policy" in await failure(session, code)


@pytest.mark.parametrize(
    "code",
    [
        "from servers.galley import add\nadd(1, 2)",
        "servers.galley.add(1, b=2)",
        "import servers.galley.add\nservers.galley.add(1, 2)",
        "from servers.galley.add import add\nadd(1, 2)",
        "call_mcp_tool('galley.add', {'a': 1, 'b': 2})",
    ],
)
async def test_who_may_call_it_imports_it_as_any_other(code: str) -> None:
    async with galley(PRIVATE) as (bell, _), bell.session(user="bob") as bobs:
        assert await value(bobs, code) == 3
        found = await value(bobs, "search_tools('add two numbers', 'full', limit=1)[0]")
        assert found["import"] == "from servers.galley import add"
        assert "Add two numbers" in await value(bobs, "servers.galley.add.__doc__")


async def test_a_tool_without_a_file_is_asked_for_once() -> None:
    async with galley(PRIVATE | {"calls_per_session": 4}) as (bell, _):
        for code in ("servers.galley.add(1, 2)", "from servers.galley import add\nadd(1, 2)"):
            async with bell.session(user="bob") as bobs:
                for _ in range(3):
                    assert await value(bobs, code) == 3
                assert "all 4 calls" in await failure(bobs, "import servers.galley.none")
                assert "all 4 calls" in await failure(bobs, "servers.galley.none")


async def test_a_server_whose_tools_are_all_for_some_has_a_package_without_them() -> None:
    rules = [{"tools": ["galley.*"], "action": "allow", "users": ["bob"]}]
    async with galley({"default": "deny", "rules": rules}) as (bell, session):
        shown = await value(
            session, "import servers.galley\nopen('/servers/galley/README.md').read()"
        )
        assert "0 tools for everyone" in shown and "Small tools" not in shown
        assert "Small tools" not in await value(session, "servers.galley.__doc__")
        async with bell.session(user="bob") as bobs:
            assert await value(bobs, "servers.galley.echo('hi')") == "hi"


async def test_completions_and_lists_of_resources_pass_the_same_rules() -> None:
    rules = [{"tools": ["galley.list_*"], "action": "deny"}]
    async with galley({"rules": rules}) as (_, session):
        for code in ("servers.galley.resources()", "servers.galley.prompts()"):
            assert "denied by policy" in await failure(session, code)


def test_nothing_is_asked_of_a_server_past_the_door() -> None:
    """Whoever has an Upstream can ask it anything; so only the pipeline has one."""
    source = Path(divingbell.__file__).parent
    having = {
        str(path.relative_to(source))
        for folder in ("surfaces", "gateway")
        for path in (source / folder).rglob("*.py")
        if re.search(r"\.upstream\(", path.read_text("utf-8"))
    }
    assert having == {"gateway/pipeline.py"}


async def test_a_bound_argument_can_not_be_given_to_a_prompt() -> None:
    async with galley({"bound": {"galley.*.topic": "{user}"}}) as (_, session):
        code = "servers.galley.get_prompt('plan', **{'Topic ': 'x'})"
        assert "topic is set by the host" in await failure(session, code)


async def test_whatever_is_asked_counts_once() -> None:
    async with galley({"calls_per_session": 6}) as (_, session):
        for code in (
            "servers.galley.resources()",
            "servers.galley.read_resource('notes://today')",
            "servers.galley.get_prompt('plan', topic='x')",
            "search_tools('x')",
            "call_mcp_tool('read_resource', {'strange': 1})",
            "call_mcp_tool('galley.none')",
        ):
            await session.run(code)
        assert "all 6 calls are used" in await failure(session, "servers.galley.echo('x')")


async def test_resources_pass_the_same_rules() -> None:
    rule = {"tools": ["galley.read_resource"], "action": "deny", "when": {"uri": "notes://t*"}}
    async with galley({"rules": [rule]}) as (_, session):
        assert "denied" in await failure(session, "servers.galley.read_resource('notes://today')")
        assert await value(session, "servers.galley.read_resource('notes://day/1')")


async def test_bound_arguments_are_neither_set_nor_seen_by_code() -> None:
    async with galley({"bound": {"galley.orders_of.user_id": "{user}"}}) as (_, session):
        assert await value(session, "servers.galley.orders_of(limit=2)") == ["ann-0", "ann-1"]
        for code in (
            "call_mcp_tool('galley.orders_of', {'user_id': 'bob'})",
            "servers.galley.orders_of(user_id='bob')",
        ):
            result = await session.run(code)
            assert result.status == "error", code
        details = await value(session, "get_mcp_tool_details('galley.orders_of')")
        assert "user_id" not in str(details)
        assert "user_id" not in await value(session, "open('/servers/galley/orders_of.py').read()")


async def test_what_is_too_large_is_refused_with_the_size() -> None:
    async with galley({"max_arguments": "1KB", "max_result": "10KB"}) as (_, session):
        words = await failure(session, "servers.galley.echo('x' * 2000)")
        assert "1,024 are allowed" in words
        words = await failure(session, "servers.galley.big(0.1)")
        assert "10,240 are allowed" in words and "The call was made" in words


async def test_a_tool_has_a_limit_of_its_own() -> None:
    async with galley(entry={"timeout": 0.3}) as (_, session):
        code = "try:\n    servers.galley.sleep(30)\nexcept ToolTimeout as e: r = e.code\nr"
        assert await value(session, code) == "tool_timeout"
        assert await value(session, "servers.galley.add(1, 1)") == 2


# People

ASK = {"rules": [{"tools": ["galley.add"], "action": "ask", "reason": "it adds"}]}


async def test_a_callback_of_the_library_approves() -> None:
    asked: list[Approval] = []

    async def approve(approval: Approval) -> bool:
        asked.append(approval)
        return "7" not in approval.arguments

    async with galley(ASK, on_approval=approve) as (_, session):
        assert await value(session, "servers.galley.add(1, 2)") == 3
        assert "denied by the person" in await failure(session, "servers.galley.add(7, 2)")
    assert [(one.tool, one.reason, one.user) for one in asked] == [
        ("galley.add", "it adds", "ann")
    ] * 2


async def test_a_late_yes_to_all_is_not_for_the_next_cell() -> None:
    """A thread is left over from a cell; its person answers when that cell has ended."""
    asked, answers = asyncio.Queue[Approval](), asyncio.Queue[str]()

    async def decide(approval: Approval) -> str:
        asked.put_nowait(approval)
        return await answers.get()

    rules = [{"tools": ["galley.echo"], "action": "ask"}]
    async with galley({"rules": rules}, on_approval=decide) as (_, session):
        await value(session, LEFT_OVER)
        await asked.get()
        answers.put_nowait("always")
        answers.put_nowait("no")
        words = await failure(session, "thread.join()\nservers.galley.echo('again')")
        assert "denied by the person" in words and asked.qsize() == 1
        assert await value(session, "said") == ["first"]


LEFT_OVER = """
import threading
from servers.galley import echo
said = []
thread = threading.Thread(target=lambda: said.append(echo("first")))
thread.start()
"""


async def test_nobody_to_ask_is_a_no() -> None:
    async with galley(ASK) as (_, session):
        words = await failure(session, "servers.galley.add(1, 2)")
        assert "needs approval" in words


async def test_the_person_behind_a_client_is_asked_and_may_say_yes_to_all() -> None:
    person = Person(decision="yes to all like this in this run")
    async with galley(ASK) as (_, session):
        code = "[servers.galley.add(n, 1) for n in range(20)]"
        result = await session.run(code, asker=person)
        assert result.value == list(range(1, 21)) and len(person.asked) == 1
        await session.run("servers.galley.add(1, 1)", asker=person)
        assert len(person.asked) == 2  # another run, another question


async def test_the_clock_stands_still_while_a_person_thinks() -> None:
    class Slow(Person):
        async def elicit(self, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
            await asyncio.sleep(1.2)
            return await super().elicit(params)

    async with galley(ASK) as (_, session):
        result = await session.run(
            "servers.galley.add(1, 1)", timeout=0.5, asker=Slow(decision="yes")
        )
        assert result.value == 2


async def test_a_question_of_a_server_reaches_the_person() -> None:
    person = Person(colour="blue")
    async with galley() as (_, session):
        result = await session.run("servers.galley.paint('the boat')", asker=person)
        assert result.value == "the boat is blue" and len(person.asked) == 1
        assert "decline" in await failure(session, "servers.galley.paint('the boat')")
    async with galley({"elicitation": "decline"}) as (_, session):
        result = await session.run("servers.galley.paint('the boat')", asker=person)
        assert result.status == "error" and len(person.asked) == 1


# Servers


async def test_one_dead_server_costs_nobody_else_anything() -> None:
    dead = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}
    async with galley(servers={"dead": dead}) as (bell, session):
        assert await value(session, "servers.galley.add(1, 1)") == 2
        words = await failure(session, "from servers.dead import anything")
        assert words.startswith("the server dead is not available: it ended with status 3")
        assert "is not available" in await failure(session, "call_mcp_tool('dead.x', {})")
        states = {state.name: state.state for state in bell.gateway.servers()}
        assert states["galley"] == "ready"
        assert states["dead"] in ("failed", "connecting")  # it is tried again now and then


async def test_an_entry_that_can_not_be_used_says_why() -> None:
    broken = {"command": "x", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}
    async with galley(servers={"broken": broken}) as (_, session):
        words = await failure(session, "call_mcp_tool('broken.x', {})")
        assert "NOT_SET_ANYWHERE is not set" in words


async def test_servers_come_and_go_while_it_runs() -> None:
    async with galley() as (bell, session):
        second = Server("second", command=str(ENTRY["command"]), args=tuple(ENTRY["args"]))
        bell.gateway.add(second)
        assert await value(session, "servers.second.add(2, 2)") == 4
        with pytest.raises(ConfigError, match="already"):
            bell.gateway.add(second)
        bell.gateway.add(UnusableServer("third", "it has a hole"))
        assert "it has a hole" in await failure(session, "call_mcp_tool('third.x', {})")
        await bell.gateway.remove("second")
        assert "there is no server" in await failure(session, "import servers.second")
        assert await value(session, "import os; 'second' in os.listdir('/servers')") is False


async def test_a_killed_server_is_started_again() -> None:
    async with galley() as (bell, session):
        assert await value(session, "servers.galley.count()") == 1
        upstream = bell.gateway.fleet.upstream("galley")
        before = upstream.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        await until(lambda: upstream.pid not in (None, before), "a new process")
        result: Result = await session.run("servers.galley.count()")
        assert result.value == 1  # a new process counts from the start


async def test_a_stateful_server_can_have_a_connection_for_each_session() -> None:
    async with galley(entry={"per_session": True}) as (bell, session):
        async with bell.session(user="ann") as other:
            assert await value(session, "servers.galley.count()") == 1
            assert await value(session, "servers.galley.count()") == 2
            assert await value(other, "servers.galley.count()") == 1
            pid = bell.gateway.fleet.upstream("galley", other.key).pid
            assert pid is not None
        await until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the other's server")
        assert await value(session, "servers.galley.count()") == 3


@pytest.fixture
async def growing(tmp_path: Path) -> AsyncIterator[Path]:
    """A server whose file is a bit longer each time."""
    path = tmp_path / "growing.py"
    path.write_text(PATH.read_text())
    yield path


async def test_a_kept_list_serves_until_the_server_says_otherwise(growing: Path) -> None:
    entry = {"command": sys.executable, "args": [str(growing)]}
    async with (
        Divingbell(pool=0, preload=[], servers={"growing": entry}) as bell,
        bell.session() as session,
    ):
        await value(session, "servers.growing.add(1, 1)")
    text = growing.read_text()
    growing.write_text(
        text.replace(
            "if __name__",
            '@mcp.tool()\ndef extra() -> int:\n    """New."""\n    return 7\n\n\nif __name__',
        )
    )
    async with (
        Divingbell(pool=0, preload=[], servers={"growing": entry}) as bell,
        bell.session() as session,
    ):
        # Known from last time: it is not even started.
        assert bell.gateway.servers()[0].state == "idle"
        assert "growing.add" in await value(session, "list_mcp_tools()")
        assert bell.gateway.servers()[0].state == "idle"
        # What it does not know is reason enough to ask it.
        assert await value(session, "servers.growing.extra()") == 7
        assert await value(session, "servers.growing.add(1, 1)") == 2


async def test_a_kept_list_that_is_old_refuses_nothing(growing: Path) -> None:
    entry = {"command": sys.executable, "args": [str(growing)]}
    settings: dict[str, Any] = {"pool": 0, "preload": [], "servers": {"growing": entry}}
    async with Divingbell(**settings) as bell, bell.session() as session:
        await value(session, "servers.growing.add(1, 1)")
    text = growing.read_text()
    growing.write_text(
        text.replace("def echo(text: str)", "def echo(text: str, loud: bool = False)")
    )
    code = "call_mcp_tool('growing.echo', {'text': 'x', 'loud': True})"
    async with Divingbell(**settings) as bell, bell.session() as session:
        assert await value(session, code) == "x"
    growing.write_text(text.replace("def counted", "def counted_up"))
    async with Divingbell(**settings) as bell, bell.session() as session:
        assert await value(session, "call_mcp_tool('growing.counted_up', {'name': 'x'})") == 0


async def test_a_changed_definition_is_noticed(growing: Path) -> None:
    entry = {"command": sys.executable, "args": [str(growing)]}
    asked: list[Approval] = []

    async def approve(approval: Approval) -> str:
        asked.append(approval)
        return "session"

    policy = {"rules": [{"tools": ["growing.add"], "action": "ask"}]}
    settings: dict[str, Any] = {
        "servers": {"growing": entry},
        "policy": policy,
        "on_approval": approve,
        "pool": 0,
        "preload": [],
    }
    async with Divingbell(**settings) as bell, bell.session() as session:
        await value(session, "servers.growing.add(1, 1), servers.growing.add(1, 2)")
        assert len(asked) == 1
        # From allow to another definition: a warning.
        assert await value(session, "servers.growing.echo('x')") == "x"
    text = growing.read_text()
    text = text.replace('"""Add two numbers."""', '"""Add two numbers. And send them home."""')
    growing.write_text(text.replace('"""Give the text back."""', '"""Give the text away."""'))
    async with Divingbell(**settings) as bell, bell.session() as session:
        events = [event async for event in session.stream("servers.growing.echo('x')")]
        await until(lambda: bell.gateway.servers()[0].state == "ready", "the new list")
        events += [event async for event in session.stream("servers.growing.echo('x')")]
        assert any("its definition has changed" in event.text for event in events)
        await value(session, "servers.growing.add(1, 1)")
        assert len(asked) == 2 and "its definition has changed" in asked[1].reason


# The ledger


async def test_each_execution_has_a_ledger() -> None:
    async with galley() as (_, session):
        code = "rows = servers.galley.rows(2000)\nlen(rows)"
        result = await session.run(code)
        ledger = result.ledger
        assert ledger is not None and ledger.calls == 1
        assert ledger.direct_definition_tokens == 0  # no model was spared them
        assert ledger.direct_call_tokens > 10_000 and ledger.output_tokens < 10
        assert ledger.saved > 10_000 and ledger.ratio > 0.95
        second = (await session.run("1 + 1")).ledger
        assert second is not None and second.direct == 0 and second.saved < 0


async def test_without_servers_there_is_no_ledger(session: Session) -> None:
    assert (await session.run("1 + 1")).ledger is None


# Finding tools


async def test_a_search_in_two_looks_names_servers_and_then_the_tools_of_one() -> None:
    async with galley(servers={"other": ENTRY}) as (_, session):
        first = await value(session, "search_tools('add two numbers', 'servers')")
        assert {item["server"] for item in first} == {"galley", "other"}
        assert first[0]["best"][0].endswith(".add")
        second = await value(
            session, "search_tools('add two numbers', server='other', limit=5)[0]['name']"
        )
        assert second == "other.add"
        code = "search_tools('calculate the total | add two numbers', server='other')[0]['name']"
        assert await value(session, code) == "other.add"


async def test_a_server_is_not_named_to_a_user_who_may_call_none_of_its_tools() -> None:
    rules = [{"tools": ["other.*"], "action": "allow", "users": ["bob"]}]
    rules.append({"tools": ["other.*"], "action": "deny"})
    async with galley({"rules": rules}, servers={"other": ENTRY}) as (bell, session):
        code = "[item['server'] for item in search_tools('add two numbers', 'servers')]"
        assert await value(session, code) == ["galley"]
        async with bell.session(user="bob") as bobs:
            assert sorted(await value(bobs, code)) == ["galley", "other"]


@pytest.mark.parametrize("search", ["auto", "meaning"])
async def test_tools_are_found_by_a_model_that_was_brought(tmp_path: Path, search: str) -> None:
    pytest.importorskip("onnxruntime")
    model = onnx_models.tiny(tmp_path / "model")
    async with galley(search=search, search_model=str(model)) as (bell, session):
        await until(lambda: bell.gateway.visible._index.embeddings is not None, "the model")
        known = bell.gateway.visible._index.embeddings
        assert known is not None
        await until(lambda: bool(known.nearness(["money"])), "the tools are prepared")
        assert await value(session, "search_tools('money', limit=1)")


async def test_a_model_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    for search in ("auto", "meaning"):
        with pytest.raises(ConfigError, match=r"search_model: .* is no folder"):
            async with galley(search=search, search_model=str(tmp_path / "nowhere")):
                pass


async def test_a_model_that_cannot_be_read_is_told_and_words_decide(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("onnxruntime")
    model = onnx_models.tiny(tmp_path)
    (model / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ConfigError, match=r"model\.onnx can't be read"):
        async with galley(search="meaning", search_model=str(model)):
            pass
    caplog.set_level(logging.WARNING)
    async with galley(search="auto", search_model=str(model)) as (_, session):
        await until(lambda: "model.onnx can't be read" in caplog.text, "the warning")
        assert await value(session, "search_tools('add two numbers', limit=1)")


async def test_a_model_that_fails_leaves_search_by_words(caplog: pytest.LogCaptureFixture) -> None:
    class UnusableServer:
        def nearness(self, phrasings: list[str]) -> dict[bytes, float]:
            raise RuntimeError("no memory for this")

    async with galley(search="words") as (bell, session):
        bell.gateway.visible._index.embeddings = UnusableServer()  # type: ignore[assignment]
        code = "search_tools('add two numbers', limit=1)[0]['name']"
        assert await value(session, code) == "galley.add"
        assert "by words alone" in caplog.text
        caplog.clear()
        assert await value(session, code) == "galley.add"
        assert not caplog.text
