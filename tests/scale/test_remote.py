"""The second session handle: the same names, and what is told when lines and nodes are lost."""

import asyncio
import contextlib
import itertools
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from divingbell import Divingbell, Event, InvalidInput, Session
from divingbell.errors import (
    CapacityError,
    FileRefused,
    SandboxUnavailable,
    SessionClosed,
    ToolFailed,
)
from divingbell.journal.events import CellEnded, CellStarted, SessionEnded, SessionOpened
from divingbell.scale.link import Link, Opened
from divingbell.scale.remote import RemoteCell, RemoteSession
from divingbell.session.base import SessionHandle
from divingbell.session.local import LocalSession
from divingbell.session.transcript import MAX_EVENTS, most_rich
from divingbell_inside import frames
from tests.gateway.galley import galley
from tests.scale import nodes
from tests.surfaces.cli.command import PATIENCE
from tests.waiting import until, until_there

ONLY_LOCAL = {
    # Where the code runs itself: a node has this, and a front has none.
    *("execute", "frame", "text", "ended", "overdrawn", "note", "sandbox"),
}
ONLY_REMOTE = {
    # What a link tells a session, and where it is.
    *("called", "ended_there", "leave", "node", "take_state"),
}


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_handles_have_every_name_that_users_have() -> None:
    assert _public(LocalSession) - _public(RemoteSession) == ONLY_LOCAL
    assert _public(RemoteSession) - _public(LocalSession) == ONLY_REMOTE
    assert _public(SessionHandle) <= _public(RemoteSession)
    assert not RemoteSession.__abstractmethods__


@pytest.fixture
async def pair() -> AsyncIterator[list[nodes.RunningNode]]:
    """Two nodes of their own, for a test that ends one."""
    async with nodes.running("east", "west", DIVINGBELL_PRELOAD="") as found:
        yield found


async def _on(bell: Divingbell, name: str, **options: Any) -> Session:
    """Open a session on a node."""
    for number in range(100):
        session = await bell.open(f"on-{name}-{number}", **options)
        if nodes.node_of(session) == name:
            return session
        await bell.release(session)
    raise AssertionError(f"no session came to {name}")


def _named(pair: list[nodes.RunningNode], name: str) -> nodes.RunningNode:
    return next(node for node in pair if node.name == name)


async def test_a_killed_node_costs_its_own_sessions_and_says_so(
    pair: list[nodes.RunningNode],
) -> None:
    told: list[Any] = []
    async with nodes.front(*(node.address for node in pair), on_event=told.append) as bell:
        lost, other = await _on(bell, "east"), await _on(bell, "west")
        await lost.run("x = 1")
        await other.run("y = 2")
        running = asyncio.create_task(
            lost.run("open('begun', 'w').close()\nimport time; time.sleep(60)")
        )
        await until_there(lost, "begun")
        _named(pair, "east").kill()
        began = time.monotonic()
        result = await running
        assert result.status == "killed" and result.error is not None
        assert "the node east was lost" in result.error.message
        after = await lost.run("'x' in globals()")
        assert (after.status, after.value, after.state) == ("ok", False, "fresh")
        assert any("east" in note for note in after.notes)
        assert any("files in /workspace are gone" in note for note in after.notes)
        assert nodes.node_of(lost) == "west"
        assert (await lost.run("1")).state == "kept"
        assert (await other.run("y")).value == 2
        assert time.monotonic() > began
        started = [event.cell for event in told if isinstance(event, CellStarted)]
        ended = [event.cell for event in told if isinstance(event, CellEnded)]
        assert sorted(started) == sorted(ended)
        await bell.release(lost)
        await bell.release(other)


async def test_the_calls_that_a_lost_cell_has_made_are_told(
    pair: list[nodes.RunningNode],
) -> None:
    with nodes.used(nodes.FixedCluster([node.address for node in pair])):
        async with galley(backend="ray") as (bell, _):
            session = await _on(bell, "east", user="ann")
            code = (
                "servers.galley.add(1, 2)\nopen('begun', 'w').close()\nimport time; time.sleep(60)"
            )
            running = asyncio.create_task(session.run(code))
            await until_there(session, "begun")
            _named(pair, "east").kill()
            result = await running
            assert [(call.name, call.status) for call in result.calls] == [("galley.add", "ok")]
            assert any("galley.add" in note for note in result.notes)


async def test_a_node_that_hangs_is_given_up_and_closes_what_it_had_when_it_is_back(
    pair: list[nodes.RunningNode],
) -> None:
    cluster = nodes.FixedCluster([node.address for node in pair])
    async with nodes.front(cluster=cluster) as bell:
        session = await _on(bell, "east")
        await session.run("x = 1")
        node = _named(pair, "east")
        node.hang()
        try:
            result = await session.run("x")
            assert result.status == "killed"
            after = await session.run("'x' in globals()")
            assert (after.value, after.state) == (False, "fresh")
            assert nodes.node_of(session) == "west"
        finally:
            node.wake()
        # It is asked again for the same session: it does not have it any more.
        cluster.given_up.clear()
        cluster.addresses = [node.address]
        async with nodes.front(cluster=cluster) as second:
            other = await second.open(session.id)
            result = await other.run("'x' in globals()")
            assert (result.status, result.value, result.cell) == ("ok", False, 1)


async def test_a_front_that_goes_leaves_its_cell_running_and_the_next_hears_how_it_ended(
    two_nodes: list[nodes.RunningNode],
) -> None:
    addresses = [node.address for node in two_nodes]
    told: list[Any] = []
    async with nodes.front(*addresses) as first:
        one = await first.open("shared", user="ann")
        running = asyncio.create_task(
            one.run("open('begun', 'w').close()\nimport time; time.sleep(1)\nx = 5\n1 / 0")
        )
        await until_there(one, "begun")
        _cut(one)  # as if the process had been killed: nothing is said on the line
        async with nodes.front(*addresses, on_event=told.append) as second:
            two = await second.open("shared", user="ann")
            assert two.key == one.key
            result = await two.run("x")
            assert (result.status, result.value) == ("ok", 5)
            [note] = [note for note in result.notes if "went on" in note]
            assert "ZeroDivisionError" in note
            ended = [event for event in told if isinstance(event, CellEnded)]
            assert [event.cell for event in ended] == [1, 2]
            await second.release(two)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def _cut(session: Session) -> None:
    """Break the line as if this front had been killed, and keep it from laying it again."""
    link = session._handle._link  # type: ignore[attr-defined]
    link.lay = _never
    link.line._transport.abort()


async def _never() -> None:
    await asyncio.sleep(3600)


async def test_a_line_that_breaks_is_laid_again_and_the_cell_goes_on(
    bell: Divingbell, session: Session
) -> None:
    await session.run("x = 1")
    running = asyncio.create_task(
        session.run("open('begun', 'w').close()\nimport time; time.sleep(1)\nx + 1")
    )
    await until_there(session, "begun")
    session._handle._line._transport.abort()  # type: ignore[attr-defined]
    result = await running
    assert (result.status, result.value, result.state) == ("ok", 2, "kept")
    assert (await session.run("x")).value == 1


async def test_a_line_that_breaks_within_a_stream_costs_none_of_it(
    bell: Divingbell,
) -> None:
    code = (
        "import os, time\nfor n in range(3000):\n    print('x' * 1000, n)\n"
        "    while n % 1000 == 999 and not os.path.exists(f'go-{n}'): time.sleep(0.01)\n"
    )
    async with bell.session(output="16MB") as session:
        shown, breaks = "", 0
        async for event in session.stream(code):
            shown += event.text if event.type == "stdout" else ""
            assert event.type != "notice"
            if breaks < 3 and f" {1000 * breaks + 500}\n" in shown:
                # Much is under way, and more is shown while no line is there.
                session._handle._line._transport.abort()  # type: ignore[attr-defined]
                await session.files.put(f"go-{1000 * breaks + 999}", b"")
                breaks += 1
        lines = shown.splitlines()
        assert breaks == 3 and event.result is not None
        assert lines == ["x" * 1000 + f" {n}" for n in range(3000)]
        assert (event.result.status, event.result.text) == ("ok", shown)
        assert (await session.run("n")).state == "kept"


async def test_a_line_that_breaks_when_the_result_has_left_costs_neither_it_nor_another_cell(
    bell: Divingbell, session: Session
) -> None:
    handle: Any = session._handle
    await session.run("x = 1")
    line = handle._line
    line._transport.pause_reading()  # the node believes that all has come
    running = asyncio.create_task(session.run("open('begun', 'w').close()\nx = x + 1"))
    async with nodes.front(*bell._engine.cluster.addresses) as second:  # type: ignore[union-attr]
        beside = await second.open(session.id, user=session.user)
        await until_there(beside, "begun")
        assert (await beside.run("x")).value == 2
        line._transport.abort()
        result = await running
        # Its result was kept until another cell began: that one's is not taken for it.
        assert (result.status, result.state) == ("killed", "kept")
        assert "how it ended is not known" in str(result.error)
        assert session.alive and (await session.run("x")).value == 2
        line = handle._line
        line._transport.pause_reading()
        running = asyncio.create_task(session.run("open('more', 'w').close()\nx = x + 1\nx"))
        await until_there(beside, "more")
        line._transport.abort()
        result = await running
        assert (result.status, result.value) == ("ok", 3)


@pytest.mark.parametrize("turns", [0, 1, 2, 4, 7])
async def test_a_cell_that_is_cancelled_while_its_line_is_broken_ends_on_its_node(
    bell: Divingbell, session: Session, turns: int
) -> None:
    code = "import time\nwent_on = False\nopen('begun', 'w').close()\ntime.sleep(8)\nwent_on = True"
    running = asyncio.create_task(session.run(code))
    await until_there(session, "begun")
    session._handle._line._transport.abort()  # type: ignore[attr-defined]
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    after = await session.run("went_on")
    assert (after.value, after.state) == (False, "kept")


async def test_a_cell_that_is_cancelled_in_the_breath_in_which_it_is_sent_does_not_run(
    bell: Divingbell, session: Session
) -> None:
    for turns in range(1, 9):
        running = asyncio.create_task(session.run("import time; time.sleep(8); went_on = True"))
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    after = await session.run("'went_on' in globals()")
    assert (after.value, after.state) == (False, "kept")


@pytest.mark.parametrize("call", ["add(1, 2)", "paint('the boat')"])
async def test_a_question_whose_line_breaks_is_withdrawn_and_its_call_is_not_made(
    two_nodes: list[nodes.RunningNode], call: str
) -> None:
    """An approval of ours, and a question of a server."""
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    class Person:
        async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
            asked.set()
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                withdrawn.set()
                raise
            return ElicitResult(action="accept", content={"decision": "yes", "colour": "red"})

    code = (
        f"try:\n    servers.galley.{call}\nexcept ToolError as e:\n    said = str(e)\n"
        "import time; time.sleep(1); said"
    )
    rules = [{"tools": ["galley.add"], "action": "ask"}]
    with nodes.used(nodes.FixedCluster([node.address for node in two_nodes])):
        async with galley({"rules": rules}, backend="ray") as (_, session):
            running = asyncio.create_task(session.run(code, asker=Person()))
            async with asyncio.timeout(PATIENCE):
                await asked.wait()
                session._handle._line._transport.abort()  # type: ignore[attr-defined]
                await withdrawn.wait()
            result = await running
            assert result.status == "ok" and "line to the gateway broke" in str(result.value)
            assert not [made for made in result.calls if made.status == "ok"]


async def test_a_line_lost_within_put_and_get_is_an_error_with_words(
    bell: Divingbell, session: Session
) -> None:
    handle: Any = session._handle

    async def breaking() -> AsyncIterator[bytes]:
        yield bytes(1 << 20)
        handle._line._transport.abort()
        for _ in range(20):
            yield bytes(1 << 20)

    with pytest.raises(FileRefused):
        await session.files.put("large", breaking())
    await session.files.put("whole", bytes(8 << 20))
    with pytest.raises(FileRefused):
        async for _ in session.files.stream("whole"):
            handle._line._transport.abort()
    assert len(await session.files.get("whole")) == 8 << 20


async def test_a_line_lost_within_a_tool_call_tells_the_code(
    two_nodes: list[nodes.RunningNode],
) -> None:
    with nodes.used(nodes.FixedCluster([node.address for node in two_nodes])):
        async with galley(backend="ray") as (_, session):
            code = (
                "try:\n    servers.galley.sleep(2)\nexcept ToolError as e:\n    said = str(e)\nsaid"
            )
            running = asyncio.create_task(session.run(code))
            calls = session._handle._calls
            await until(lambda: calls._tasks, "the call is under way")
            session._handle._line._transport.abort()  # type: ignore[attr-defined]
            result = await running
            assert result.status == "ok", result
            assert "line to the gateway broke" in str(result.value)
            assert (await session.run("servers.galley.add(1, 2)")).value == 3


async def test_two_fronts_that_open_one_id_share_one_session(
    two_nodes: list[nodes.RunningNode],
) -> None:
    addresses = [node.address for node in two_nodes]
    async with nodes.front(*addresses) as one, nodes.front(*addresses) as two:
        opened = await asyncio.gather(*(bell.open("same", user="ann") for bell in (one, two)))
        assert opened[0].key == opened[1].key
        await opened[0].run("x = 1")
        assert (await opened[1].run("x")).value == 1
        results = await asyncio.gather(*(each.run("x") for each in opened))
        assert {result.cell for result in results} == {3, 4}
        other = await two.open("same", user="bob")
        assert other.key != opened[0].key
        assert (await other.run("'x' in globals()")).value is False
        await one.release(opened[0])
        assert (await opened[1].run("x")).value == 1  # the other still holds it
        await two.release(opened[1])
        again = await two.open("same", user="ann")
        assert (await again.run("'x' in globals()")).value is False


async def test_a_session_that_ends_on_its_node_has_ended_here(bell: Divingbell) -> None:
    told: list[Any] = []
    with contextlib.ExitStack() as undo:
        undo.callback(bell.journal.watch(told.append))
        session = await bell.open(idle_timeout=0.3)
        await session.run("1")
        await until(lambda: session.closed, "it is idle for long enough")
        await until(lambda: any(isinstance(e, SessionEnded) for e in told), "it is told")
        opened = [event for event in told if isinstance(event, SessionOpened)]
        assert len(opened) == 1


async def test_a_node_with_no_place_left_is_named() -> None:
    async with (
        nodes.running("small", DIVINGBELL_PRELOAD="", DIVINGBELL_MAX_SESSIONS="1",
                      DIVINGBELL_OPEN_TIMEOUT="0.2", DIVINGBELL_POOL="0") as [node],
        nodes.front(node.address) as bell,
        bell.session(),
    ):  # fmt: skip
        with pytest.raises(CapacityError, match="the node small has no place left"):
            await bell.open()


async def test_where_there_is_no_node_it_is_said(two_nodes: list[nodes.RunningNode]) -> None:
    async with nodes.front() as bell:
        with pytest.raises(SandboxUnavailable, match="no node"):
            await bell.open()


async def test_a_reader_that_never_reads_holds_up_nobody(bell: Divingbell) -> None:
    async with bell.session(output="64MB") as slow, bell.session("beside") as beside:
        events = slow.stream("for _ in range(48):\n    print('x' * (1 << 20))")
        await anext(events)
        for _ in range(20):
            assert (await beside.run("1 + 1")).value == 2
        await events.aclose()


async def test_functions_of_the_program_are_called_here(bell: Divingbell, session: Session) -> None:
    def double(number: int) -> int:
        return 2 * number

    result = await session.run("from servers.host import double\ndouble(21)", tools=[double])
    assert (result.status, result.value) == ("ok", 42)
    with pytest.raises(InvalidInput):
        await session.set("not a name", 1)


async def test_who_joins_a_session_whose_cell_runs_takes_nothing_of_it(
    two_nodes: list[nodes.RunningNode],
) -> None:
    addresses = [node.address for node in two_nodes]
    told: list[Any] = []

    def answer() -> int:
        return 42

    code = (
        "from servers.host import answer\nimport os, time\nopen('begun', 'w').close()\n"
        "while not os.path.exists('go'): time.sleep(0.01)\nanswer()"
    )
    async with (
        nodes.front(*addresses) as first,
        nodes.front(*addresses, on_event=told.append) as second,
    ):
        one = await first.open("watched", user="ann")
        running = asyncio.create_task(one.run(code, tools=[answer]))
        await until_there(one, "begun")
        two = await second.open("watched", user="ann")
        await two.files.put("go", b"")
        result = await running
        assert (result.status, result.value) == ("ok", 42)
        after = await two.run("1")
        assert not any("went on" in note for note in after.notes)
        assert [event.cell for event in told if isinstance(event, CellEnded)] == [2]
        await second.release(two)
        await first.release(one)


async def test_a_long_failure_of_a_tool_is_told_and_costs_nobody_the_line(
    two_nodes: list[nodes.RunningNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "ж" * 15_000 + "\ud800"

    async def fails(*_: Any) -> Any:
        raise ToolFailed(words)

    with nodes.used(nodes.FixedCluster([node.address for node in two_nodes])):
        async with galley(backend="ray") as (bell, _), bell.session(user="ann") as session:
            await session.run("1")
            line = session._handle._line  # type: ignore[attr-defined]
            monkeypatch.setattr(bell.gateway, "answer", fails)
            result = await session.run(
                "try:\n    servers.galley.add(1, 2)\nexcept ToolError as e:\n    said = str(e)\n"
                "said.count('ж')"
            )
            assert (result.status, result.value) == ("ok", 15_000)
            assert line.lost is None


async def test_opening_that_is_given_up_takes_no_place() -> None:
    async with (
        nodes.running("small", DIVINGBELL_PRELOAD="", DIVINGBELL_MAX_SESSIONS="1",
                      DIVINGBELL_OPEN_TIMEOUT="2", DIVINGBELL_POOL="0") as [node],
        nodes.front(node.address) as bell,
    ):  # fmt: skip
        for turns in range(1, 40, 3):
            opening = asyncio.create_task(bell.open(f"given-up-{turns}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await bell.release(await opening)
        async with bell.session() as session:
            assert (await session.run("1")).value == 1


async def test_an_end_that_nobody_waits_for_is_written_down_once(bell: Divingbell) -> None:
    told: list[Any] = []
    with contextlib.ExitStack() as undo:
        undo.callback(bell.journal.watch(told.append))
        session = await bell.open()
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        closing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closing
        ended = [event for event in told if isinstance(event, SessionEnded)]
        assert [event.key for event in ended] == [session.key]


async def test_a_tunnel_that_never_began_is_closed(bell: Divingbell) -> None:
    session = await bell.open()
    handle: Any = session._handle
    with socket.socket(fileno=handle.open_files()) as end:
        for task in handle._tasks:
            task.cancel()
        end.settimeout(PATIENCE)
        assert await asyncio.to_thread(end.recv, 1) == b""
    await session.close()


async def test_a_session_with_the_name_of_another_is_refused(
    bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = Link.open
    async with bell.session(user="ann") as ours:

        async def forged(self: Link, *given: Any) -> Opened | None:
            opened = await opens(self, *given)
            assert opened is not None
            return opened._replace(key=ours.key, made=False)

        monkeypatch.setattr(Link, "open", forged)
        with pytest.raises(SandboxUnavailable, match="wrong name"):
            await bell.open("one", user="bob")


async def test_a_session_that_another_front_has_begun_anew_has_ended_here(
    pair: list[nodes.RunningNode],
) -> None:
    cluster = nodes.FixedCluster([node.address for node in pair])
    async with nodes.front(cluster=cluster) as first:
        one = await _on(first, "east")
        await one.run("x = 1")
        east = _named(pair, "east")
        east.kill()
        await east.process.wait()
        async with nodes.front(_named(pair, "west").address) as second:
            two = await second.open(one.id)
            await two.run("x = 2")
            with pytest.raises(SessionClosed, match="begun it anew"):
                await one.run("x")
            assert one.closed and (await two.run("x")).value == 2
            again = await first.open(one.id)
            assert again.key == two.key and (await again.run("x")).value == 2


@pytest.mark.parametrize("text", ["", "x" * 1000])
async def test_a_node_that_shows_without_end_breaks_the_rules(text: str) -> None:
    shown: list[Event] = []
    cell = RemoteCell(1, shown.append, most_output=10_000)
    with pytest.raises(frames.FrameError, match="shows more than its limits allow"):
        cell.show(itertools.repeat(Event("stdout", text)))
    assert len(shown) <= 2 * MAX_EVENTS
    assert sum(len(event.text) for event in shown) <= 2 * (10_000 + most_rich(10_000))
