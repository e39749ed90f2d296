"""Functions of the host, called by code in real sessions: how they are found, called and kept."""

import asyncio
import contextvars
import datetime
import json
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from divingbell import (
    Approval,
    ConfigError,
    Divingbell,
    HostFunction,
    InvalidInput,
    Result,
    Session,
    ToolContext,
    ToolFailed,
)
from divingbell.border.border import OpenBorder
from divingbell.gateway.functions import threads
from divingbell.host import places
from divingbell.journal.events import CallDecided, CallEnded, CallSent, JournalEvent
from tests.gateway.galley import ENTRY
from tests.waiting import PATIENCE, until

SECRET = "hunter2-of-the-database"


@dataclass
class Order:
    number: int
    day: datetime.date


def lookup_order(number: int, day: datetime.date | None = None) -> Order:
    """Look up an order of a customer.

    Args:
        number: of the order
    """
    if number < 0:
        raise ToolFailed(f"there is no order {number}")
    return Order(number, day or datetime.date(2026, 1, 2))


@asynccontextmanager
async def opened(*tools: Any, **settings: Any) -> AsyncIterator[tuple[Divingbell, Session]]:
    """A Divingbell with these functions, and a session of `ann`'s."""
    async with (
        Divingbell(tools=tools, pool=0, preload=[], search="words", **settings) as bell,
        bell.session("talk", user="ann") as session,
    ):
        yield bell, session


async def value_of(session: Session, code: str, **more: Any) -> Any:
    result = await session.run(code, **more)
    assert result.status == "ok", result.error
    return result.value


async def failure_of(session: Session, code: str, **more: Any) -> str:
    """The type and the words of the error that code ends with."""
    result = await session.run(code, **more)
    assert result.error is not None, result.value
    return f"{result.error.type}: {result.error.message}"


# Found, imported, called


async def test_a_function_is_found_imported_and_called_like_any_tool() -> None:
    async with opened(lookup_order) as (bell, session):
        code = "from servers.host import lookup_order; lookup_order(7, day='2026-05-06')"
        result = await session.run(code)
        assert result.value == {"number": 7, "day": "2026-05-06"}
        [call] = result.calls
        assert (call.name, call.status) == ("host.lookup_order", "ok")
        assert result.ledger is not None and result.ledger.calls == 1
        for code in (
            "servers.host.lookup_order(number=7)",
            "call_mcp_tool('host.lookup_order', {'number': 7})",
            "call_mcp_tool('mcp__host__lookup_order', {'number': 7})",
            "import asyncio; await asyncio.gather(lookup_order(7))",
        ):
            assert "2026-01-02" in json.dumps(await value_of(session, code))
        found = await value_of(session, "search_tools('an order', 'with_description')")
        assert found[0]["name"] == "host.lookup_order"
        assert found[0]["description"] == "Look up an order of a customer."
        details = await value_of(session, "get_mcp_tool_details('host.lookup_order')")
        assert details["import"] == "from servers.host import lookup_order"
        assert await value_of(session, "list_mcp_tools(), dir(servers)") == (
            ["host.lookup_order"], ["host"],
        )  # fmt: skip
        shown = await session.run("print(open('/servers/host/lookup_order.py').read())")
        assert "number: of the order" in shown.text
        assert [(each.name, each.state, each.tools) for each in bell.gateway.servers()] == [
            ("host", "ready", 1)
        ]
        assert [tool.full_name for tool in bell.gateway.tools()] == ["host.lookup_order"]
        assert (await bell.gateway.search("order"))[0]["name"] == "host.lookup_order"


async def test_arguments_are_checked_before_anything_is_called() -> None:
    called: list[Any] = []

    def take(day: datetime.date, count: int = 1) -> None:
        called.append((day, count))

    async with opened(take) as (_, session):
        assert "count must be an integer" in await failure_of(
            session, "servers.host.take('2026-01-01', count='1')"
        )
        words = await failure_of(session, "call_mcp_tool('host.take', {'day': 'soon'})")
        assert words.startswith("ToolError: host.take: day: ")
        assert "dya" in await failure_of(
            session, "call_mcp_tool('host.take', {'dya': '2026-01-01'})"
        )
        assert not called
        assert await value_of(session, "servers.host.take('2026-01-01')") is None
        assert called == [(datetime.date(2026, 1, 1), 1)]


async def test_neither_the_sdk_nor_a_server_is_needed() -> None:
    program = """
import asyncio, sys
from divingbell import Divingbell
assert "pydantic" not in sys.modules

def add(a: int, b: int) -> int:
    return a + b

async def main():
    async with Divingbell(tools=[add], pool=0, preload=[]) as bell:
        print((await bell.execute("servers.host.add(1, 2)")).value)
    print([name for name in sys.modules if name.partition(".")[0] in ("mcp", "mcp_types")])

asyncio.run(main())
"""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True,
        timeout=6 * PATIENCE,
    )  # fmt: skip
    assert done.stdout == "3\n[]\n", done.stderr


async def test_functions_come_and_go_while_it_runs() -> None:
    async with opened() as (bell, session):
        assert bell.gateway.servers() == []

        @bell.tool
        def one() -> int:
            return 1

        @bell.tool(name="two", description="Give two.", read_only=True)
        async def second() -> int:
            return 2

        assert one() == 1
        assert await value_of(session, "from servers.host import one, two; one() + two()") == 3
        [tool] = [each for each in bell.gateway.tools() if each.name == "two"]
        assert tool.annotations == {"readOnlyHint": True} and tool.description == "Give two."
        with pytest.raises(InvalidInput, match="there is a function 'one' already"):
            bell.tool(one)
        bell.remove_tool("one")
        assert "no tool 'host.one'" in await failure_of(session, "one()")
        assert "no tool 'one'" in await failure_of(session, "from servers.host import one")
        assert await value_of(session, "two()") == 2
        with pytest.raises(InvalidInput, match="there is no function 'one'"):
            bell.remove_tool("one")
        with pytest.raises(ConfigError, match="use remove_tool"):
            await bell.gateway.remove("host")
        bell.tool(one)
        assert await value_of(session, "one()") == 1
        bell.remove_tool("one")
        bell.remove_tool("two")
        assert bell.gateway.servers() == []
        await bell.gateway.fleet.written()  # files go a moment later
        assert await value_of(session, "dir(servers)") == []


async def test_a_decorator_before_the_start_and_a_second_start() -> None:
    bell = Divingbell(pool=0, preload=[])
    bell.tool(lookup_order)
    for _ in range(2):
        async with bell, bell.session() as session:
            assert (await value_of(session, "servers.host.lookup_order(1)"))["number"] == 1


async def test_names_that_python_has_a_meaning_for() -> None:
    def open(path: str) -> str:
        return f"opened {path}"

    def list() -> str:
        return "a list"

    made = HostFunction(lambda: "a class", name="class")
    async with opened(open, list, made) as (_, session):
        code = "from servers.host import *\nopen('/nowhere', 'rb')"
        assert "FileNotFoundError" in await failure_of(session, code)  # it is Python's own
        assert await value_of(session, "servers.host.open('x')") == "opened x"
        assert await value_of(session, "servers.host.list_(), servers.host.class_()") == (
            "a list", "a class",
        )  # fmt: skip
        assert await value_of(session, "call_mcp_tool('host.class')") == "a class"


@pytest.mark.parametrize("name", ["host", "host-"])
async def test_a_server_can_t_have_the_name_that_is_for_functions(name: str) -> None:
    servers = {name: {**ENTRY, "enabled": False}}
    bell = Divingbell(tools=[lookup_order], servers=servers, pool=0)
    with pytest.raises(ConfigError, match=f"'host' is for the functions.*give the server '{name}'"):
        async with bell:
            pass
    async with Divingbell(servers=servers, pool=0, preload=[]) as bell:
        with pytest.raises(ConfigError, match="is for the functions"):
            bell.tool(lookup_order)
        with pytest.raises(ConfigError, match="is for the functions"):
            await bell.execute("1", tools=[lookup_order])


async def test_a_server_is_added_by_its_name_and_table_beside_functions() -> None:
    async with opened(lookup_order) as (bell, session):
        bell.gateway.add("galley", ENTRY)
        assert await value_of(session, "servers.galley.add(a=1, b=2)") == 3
        assert {each.server for each in bell.gateway.tools()} == {"host", "galley"}
        with pytest.raises(ConfigError, match="'host' for the functions of this program already"):
            bell.gateway.add("host", ENTRY)
        with pytest.raises(ConfigError, match="comand"):
            bell.gateway.add("other", {"comand": "x"})


async def test_functions_have_neither_resources_nor_prompts() -> None:
    async with opened(lookup_order) as (_, session):
        assert await value_of(session, "servers.host.resources(), servers.host.prompts()") == (
            [],
            [],
        )
        for code in ("servers.host.read_resource('a://b')", "servers.host.get_prompt('c')"):
            assert "host has functions only" in await failure_of(session, code)


# Of one session alone


FORGED = (
    "call_mcp_tool('host.own')",
    "call_mcp_tool('mcp__host__own')",
    "from divingbell_inside.tools import call; call('host.own', {})",
    "from servers.host import own",
    "servers.host.own()",
    "get_mcp_tool_details('host.own')",
)


async def test_a_function_of_one_session_is_there_for_no_other() -> None:
    calls: list[str | None] = []

    def own(context: ToolContext) -> str:
        """Tell what only this session may know."""
        calls.append(context.session)
        return "mine"

    async with opened() as (bell, session), bell.session("other", user="ann") as other:
        assert await value_of(session, "from servers.host import own; own()", tools=[own]) == "mine"
        # From that run on.
        assert await value_of(session, "own(), servers.host.own()") == ("mine", "mine")
        assert await value_of(session, "list_mcp_tools()") == ["host.own"]
        found = await value_of(session, "search_tools('tell what only this session may know')")
        assert [each["name"] for each in found] == ["host.own"]
        assert (await value_of(session, "get_mcp_tool_details('host.own')"))["server"] == "host"
        async with bell.session("talk", user="bob") as namesake:
            for stranger in (other, namesake):
                for code in FORGED:
                    assert "Tell what only" not in await failure_of(stranger, code)
                told = "from divingbell_inside.tools import call\n"
                told += "call('await_server', {'server': 'host', 'tool': 'own'})"
                assert (await value_of(stranger, told))["source"] is None
                for code in (
                    "list_mcp_tools()",
                    "search_tools('tell what only')",
                    "search_tools()",
                ):
                    assert await value_of(stranger, code) == []
                listed = await value_of(stranger, "import os; os.listdir('/servers/host')")
                assert "own.py" not in listed
        assert bell.gateway.tools() == [] and await bell.gateway.search("tell") == []
        assert calls == ["talk"] * 3


async def test_functions_of_a_session_end_with_it() -> None:
    def own() -> str:
        return "mine"

    async with opened() as (bell, session):
        await value_of(session, "servers.host.own()", tools=[own])
        key = session.key
        await session.close()
        assert bell.gateway.host.tools(key) == [] and bell.gateway.servers() == []
        async with bell.session("talk", user="ann") as again:
            assert "no server 'host'" in await failure_of(again, "servers.host.own()")
        assert (await bell.execute("servers.host.own()", tools=[own])).value == "mine"


async def test_a_later_function_of_the_same_name_takes_the_place_of_the_first() -> None:
    def first() -> str:
        return "first"

    def second(word: str) -> str:
        return f"second {word}"

    async with opened(lookup_order) as (_, session):
        offered = HostFunction(first, name="own")
        assert await value_of(session, "servers.host.own()", tools=[offered]) == "first"
        code = "servers.host.own('one')"
        offered = HostFunction(second, name="own")
        assert await value_of(session, code, tools=[offered]) == "second one"
        with pytest.raises(InvalidInput, match="there is a function 'lookup_order' already"):
            await session.run("1", tools=[lookup_order])
        with pytest.raises(InvalidInput, match="has no name"):
            await session.run("1", tools=[lambda: 1])
        assert session.cells == 2


async def test_functions_that_stay_the_same_are_not_read_again() -> None:
    def own() -> int:
        return 1

    async with opened() as (bell, session):
        await session.run("from servers.host import own", tools=[own])
        before = bell.gateway.generation(session.key)
        assert await value_of(session, "own()", tools=[own]) == 1
        assert bell.gateway.generation(session.key) == before


async def test_streams_take_functions_too() -> None:
    async with opened() as (_, session):
        code = "print(servers.host.lookup_order(3)['number'])"
        events = [event async for event in session.stream(code, tools=[lookup_order])]
        assert events[-1].result is not None and events[-1].result.text == "3\n"


# The pipeline


async def test_rules_budgets_and_the_journal_hold_for_functions() -> None:
    policy = {
        "rules": [
            {"tools": ["host.lookup_order"], "action": "deny", "when": {"number": "13"}},
            {"tools": ["host.hidden"], "users": ["bob"], "action": "allow"},
            {"tools": ["host.hidden"], "action": "deny", "reason": "not for you"},
        ],
        "calls_per_session": 6,
    }

    def hidden() -> int:
        return 1

    events: list[JournalEvent] = []
    async with opened(lookup_order, hidden, policy=policy) as (bell, session):
        bell.journal.watch(events.append)
        await value_of(session, "servers.host.lookup_order(1)")
        assert "ToolDenied" in await failure_of(session, "servers.host.lookup_order(13)")
        assert "not for you" in await failure_of(session, "call_mcp_tool('host.hidden')")
        assert await value_of(session, "list_mcp_tools()") == ["host.lookup_order"]
        async with bell.session(user="bob") as bobs:
            assert await value_of(bobs, "servers.host.hidden()") == 1
        assert "6" in await failure_of(session, "for _ in range(9): servers.host.lookup_order(1)")
    told = [type(each) for each in events if isinstance(each, CallDecided | CallSent | CallEnded)]
    assert told[:3] == [CallDecided, CallSent, CallEnded]
    ended = [each for each in events if isinstance(each, CallEnded)]
    assert {each.name for each in ended} >= {"host.lookup_order", "host.hidden"}
    assert ended[0].result is not None and ended[0].outcome == "ok"


async def test_a_flood_of_calls_ends_with_the_budget() -> None:
    count = 0

    async def counted() -> None:
        nonlocal count
        count += 1

    async with opened(counted, policy={"calls_per_session": 100}) as (_, session):
        code = """
from tool_discovery import ToolError
refused = 0
for _ in range(1000):
    try: servers.host.counted()
    except ToolError as error: refused += error.code == "tool_limit"
refused
"""
        refused = await value_of(session, code)
        assert count <= 100 and refused >= 900


async def test_a_person_is_asked_with_the_arguments_as_data_and_nothing_is_pinned() -> None:
    asked: list[Approval] = []

    async def approve(approval: Approval) -> bool:
        asked.append(approval)
        return approval.values["amount"] < 100

    def refund(amount: int, lines: list[str]) -> list[str]:
        return lines

    policy = {"rules": [{"tools": ["host.refund"], "action": "ask"}]}
    async with opened(refund, policy=policy, on_approval=approve) as (bell, session):
        assert await value_of(session, "servers.host.refund(5, ['a', 'b'])") == ["a", "b"]
        async with bell.session("of nobody") as nobodys:
            await value_of(nobodys, "servers.host.refund(5, [])")
        for approval, whose in zip(asked, (session, nobodys), strict=True):
            assert (approval.session, approval.user) == (whose.id, whose.user)
            assert approval.key == whose.key
        found = bell.get(asked[0].session, user=asked[0].user)
        assert found is not None and found.key == session.key
        assert "ToolDenied" in await failure_of(session, "servers.host.refund(500, [])")
    assert asked[0].tool == "host.refund"
    assert asked[0].values == {"amount": 5, "lines": ["a", "b"]}
    with pytest.raises(TypeError):
        asked[0].values["amount"] = 1  # type: ignore[index]
    kept = places.data_folder() / "pins.json"
    assert not kept.exists() or "host" not in json.loads(kept.read_text())["servers"]


async def test_what_a_person_is_shown_can_t_change_what_is_sent() -> None:
    async def approve(approval: Approval) -> bool:
        approval.values["lines"].append("smuggled in")
        return True

    def refund(lines: list[str]) -> list[str]:
        return lines

    policy = {"rules": [{"tools": ["host.refund"], "action": "ask"}]}
    async with opened(refund, policy=policy, on_approval=approve) as (_, session):
        assert await value_of(session, "servers.host.refund(['a'])") == ["a"]


async def test_a_function_that_was_replaced_while_a_person_was_asked_is_not_called() -> None:
    called: list[str] = []

    def first() -> None:
        called.append("first")

    def second(more: int = 1) -> None:
        called.append("second")

    async def approve(_: Approval) -> bool:
        await bell.gateway.offer(session.key, [HostFunction(second, name="own")])
        return True

    policy = {"rules": [{"tools": ["host.own"], "action": "ask"}]}
    async with opened(policy=policy, on_approval=approve) as (bell, session):
        tools = [HostFunction(first, name="own")]
        assert "not there any more" in await failure_of(session, "servers.host.own()", tools=tools)
    assert not called


async def test_arguments_that_the_host_sets_are_out_of_the_reach_of_code() -> None:
    def read(path: str, tenant: str) -> str:
        return f"{tenant}: {path}"

    policy = {"bound": {"host.read.tenant": "{user}"}}
    async with opened(policy=policy) as (_, session):
        assert await value_of(session, "servers.host.read('a')", tools=[read]) == "ann: a"
        words = await failure_of(
            session, "call_mcp_tool('host.read', {'path': 'a', 'tenant': 'b'})"
        )
        assert "tenant" in words


async def test_arguments_and_results_pass_the_border() -> None:
    class Stamping(OpenBorder):
        async def inward(
            self, value: Any, principal: Any, to: str = "", written: bytes | None = None
        ) -> Any:
            if isinstance(value, Mapping) and "word" in value:
                return {"word": value["word"].replace("TOKEN", "real name")}
            return value

        async def outward(
            self, value: Any, principal: Any, reader: Any = "model", origin: str = ""
        ) -> Any:
            if isinstance(value, Mapping) and "structured" in value:
                return {**value, "structured": value["structured"].replace("real name", "TOKEN")}
            return value

    seen: list[str] = []

    def echo(word: str) -> str:
        seen.append(word)
        return f"for {word}"

    async with opened(echo, border=Stamping()) as (_, session):
        assert await value_of(session, "servers.host.echo('TOKEN')") == "for TOKEN"
    assert seen == ["real name"]


# Failures


async def test_only_a_tool_failed_is_told_in_its_own_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def leak() -> None:
        raise ConnectionError(f"postgres://admin:{SECRET}@db")

    async def leak_later() -> None:
        raise KeyError(SECRET)

    def leave() -> None:
        sys.exit(SECRET)

    async def leave_later() -> None:
        sys.exit(SECRET)

    async def give_up() -> None:
        raise asyncio.CancelledError(SECRET)

    async def slow() -> None:
        raise TimeoutError(SECRET)

    kinds = {
        leak: "ConnectionError",
        leak_later: "KeyError",
        leave: "SystemExit",
        leave_later: "SystemExit",
        give_up: "CancelledError",
        slow: "TimeoutError",
    }
    async with opened(lookup_order, *kinds) as (_, session):
        words = await failure_of(session, "servers.host.lookup_order(-4)")
        assert words == "ToolError: there is no order -4"
        with caplog.at_level(logging.ERROR, "divingbell.gateway"):
            for function, kind in kinds.items():
                result = await session.run(f"servers.host.{function.__name__}()")
                assert result.error is not None and result.error.type == "ToolError"
                assert f"failed with {kind}." in result.error.message
                assert SECRET not in f"{result.text} {result.error} {result.notes} {result.calls}"
        assert SECRET in caplog.text  # with the traceback
        assert await value_of(session, "1 + 1") == 2


async def test_what_hangs_is_not_waited_for() -> None:
    released, cancelled = threading.Event(), list[str]()

    def hang() -> None:
        released.wait()

    async def hang_later() -> None:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            cancelled.append("yes")
            raise

    async with opened(hang, hang_later, lookup_order, policy={"tool_timeout": 0.3}) as (_, session):
        try:
            for name in ("hang", "hang_later"):
                words = await failure_of(session, f"servers.host.{name}()")
                assert words.startswith(f"ToolTimeout: host.{name} took longer than 0.3 seconds")
            assert cancelled == ["yes"]
            assert (await value_of(session, "servers.host.lookup_order(1)"))["number"] == 1
        finally:
            released.set()


async def test_threads_that_hang_are_bounded_and_keep_nothing_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "PATIENCE", 0.3)
    released = threading.Event()

    def hang() -> None:
        released.wait()

    code = """
import asyncio
from servers.host import hang
answers = await asyncio.gather(*[hang() for _ in range(20)], return_exceptions=True)
sorted({(answer.code, "no thread became free" in str(answer)) for answer in answers})
"""
    try:
        async with opened(hang, lookup_order, policy={"tool_timeout": 1}) as (bell, session):
            assert await value_of(session, code) == [("tool_limit", True), ("tool_timeout", False)]
            async with bell.session(user="bob") as other:  # has threads of its own
                assert (await value_of(other, "servers.host.lookup_order(1)"))["number"] == 1
    finally:
        released.set()


def _endless() -> Iterator[str]:
    while True:
        yield "x" * 1000


def _ring() -> Any:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    return ring


async def _endless_later() -> Iterator[str]:
    return _endless()


RETURNED = {
    "text": (lambda: "x" * (1 << 25), "more than"),
    "numbers": (lambda: range(1 << 30), "more than"),
    "endless": (_endless, "more than"),
    "endless_later": (_endless_later, "more than"),
    "ring": (_ring, "nested too deeply, or holds itself"),
    "data": (lambda: b"bytes", "bytes are no text"),
    "thing": (lambda: object(), "object is no data"),
}


async def test_results_that_can_t_be_sent_are_told_so() -> None:
    functions = [HostFunction(each, name=name) for name, (each, _) in RETURNED.items()]
    async with opened(*functions) as (_, session):
        for name, (_, words) in RETURNED.items():
            code = f"call_mcp_tool('host.{name}')"
            result = await session.run(code)
            assert result.error is not None and words in result.error.message, name
            assert result.calls[0].status == "tool_result"
        assert await value_of(session, "1 + 1") == 2


async def test_the_size_of_results_and_arguments_is_that_of_the_policy() -> None:
    called: list[int] = []

    def echo(text: str) -> str:
        called.append(1)
        return text * 2

    policy = {"max_arguments": "20KB", "max_result": "20KB"}
    async with opened(echo, policy=policy) as (_, session):
        assert len(await value_of(session, "servers.host.echo('x' * 9_000)")) == 18_000
        assert "max_result" in await failure_of(session, "servers.host.echo('x' * 15_000)")
        assert len(called) == 2
        assert "max_arguments" in await failure_of(session, "servers.host.echo('x' * 30_000)")
        heavy = "call_mcp_tool('host.echo', {'text': [[]] * 6_000})"
        assert "max_arguments" in await failure_of(session, heavy)
        assert len(called) == 2


async def test_large_results_come_whole_whichever_way_they_are_made() -> None:
    def rows(count: int) -> Iterator[dict[str, Any]]:
        for number in range(count):
            yield {"number": number, "name": f"row {number}"}

    async def rows_later(count: int) -> list[dict[str, Any]]:
        return list(rows(count))

    def coroutine(count: int) -> Any:
        return rows_later(count)

    async with opened(rows, rows_later, coroutine) as (_, session):
        for name in ("rows", "rows_later", "coroutine"):
            code = f"found = servers.host.{name}(20_000); len(found), found[-1]"
            assert await value_of(session, code) == (
                20_000, {"number": 19_999, "name": "row 19999"},
            )  # fmt: skip


async def test_a_result_that_is_not_what_the_annotation_says_is_told_so() -> None:
    def wrong() -> int:
        return "text"  # type: ignore[return-value]

    async with opened(wrong) as (_, session):
        said = await failure_of(session, "servers.host.wrong()")
        assert "host.wrong: the function returned something else than its annotation says: " in said
        assert "server" not in said and "integer" in said


async def test_an_interrupt_cancels_the_call() -> None:
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        began.set()
        try:
            await asyncio.sleep(1000)
        finally:
            cancelled.set()

    async with opened(wait) as (_, session):
        running = asyncio.create_task(session.run("servers.host.wait()"))
        async with asyncio.timeout(PATIENCE):
            await began.wait()
            await session.interrupt()
            result: Result = await running
            await cancelled.wait()
        assert result.status == "cancelled"
        assert [(call.name, call.status) for call in result.calls] == [("host.wait", "cancelled")]


async def test_calls_of_a_session_that_ends_are_cancelled() -> None:
    began, cancelled, released = asyncio.Event(), asyncio.Event(), threading.Event()
    finished: list[str] = []

    async def wait() -> None:
        began.set()
        try:
            await asyncio.sleep(1000)
        finally:
            cancelled.set()

    def block() -> None:
        released.wait(PATIENCE)
        finished.append("in its own time")

    async with opened(wait, block) as (bell, session):
        code = "import asyncio; await asyncio.gather(servers.host.block(), servers.host.wait())"
        running = asyncio.create_task(session.run(code))
        async with asyncio.timeout(PATIENCE):
            await began.wait()
            await session.close()
            await cancelled.wait()
            await running
        released.set()
        await until(lambda: finished, "the function ends by itself")
        async with bell.session() as other:
            assert await value_of(other, "1 + 1") == 2


# What functions may do


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


async def test_a_function_may_use_the_bell_itself() -> None:
    async def compute(code: str) -> Any:
        return (await bell.execute(code)).value

    def compute_in_thread(code: str) -> Any:
        return asyncio.run_coroutine_threadsafe(bell.execute(code), loop).result().value

    loop = asyncio.get_running_loop()
    async with opened(compute, compute_in_thread, lookup_order) as (bell, session):
        assert await value_of(session, "servers.host.compute('6 * 7')") == 42
        assert await value_of(session, "servers.host.compute_in_thread('6 * 7')") == 42
        nested = "servers.host.compute('servers.host.lookup_order(5)[\"number\"]')"
        assert await value_of(session, nested) == 5


async def test_the_context_says_who_calls() -> None:
    seen: list[ToolContext] = []

    def who(context: ToolContext) -> None:
        seen.append(context)

    async with opened(who) as (bell, session):
        await session.run("1")
        await value_of(session, "servers.host.who()")
        words = await failure_of(session, "call_mcp_tool('host.who', {'context': {'user': 'eve'}})")
        assert "context" in words
        async with bell.session("mine") as nameless:
            await value_of(nameless, "servers.host.who()")
    assert seen == [
        ToolContext("host.who", "ann", "talk", 2),
        ToolContext("host.who", None, "mine", 1),
    ]


async def test_a_lambda_is_told_how_to_get_a_name_and_that_works() -> None:
    bell = Divingbell(pool=0)
    with pytest.raises(InvalidInput, match=r"HostFunction\(function, name=…\)"):
        bell.tool(lambda x: x)
    bell.tool(HostFunction(lambda x: x + 1, name="more"))  # type: ignore[call-overload]
    async with bell, bell.session() as session:
        assert await value_of(session, "servers.host.more(x=1)") == 2


async def test_numbers_that_become_a_set_are_few_because_their_hashes_can_be_chosen() -> None:
    def tags(numbers: set[int], words: set[str] | None = None) -> int:
        """Count."""
        return len(numbers)

    def count(words: set[str]) -> int:
        """Count."""
        return len(words)

    async with Divingbell(pool=0, tools=[tags, count]) as bell, bell.session() as session:
        assert await value_of(session, "servers.host.tags(list(range(1000)))") == 1000
        result = await session.run("servers.host.tags([n * ((1 << 61) - 1) for n in range(1001)])")
        assert result.error is not None and "at most 1,000 at a time" in result.error.message
        code = "servers.host.count([str(n) for n in range(5000)])"
        assert await value_of(session, code) == 5000
