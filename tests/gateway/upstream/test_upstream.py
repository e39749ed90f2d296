"""Connections to servers: what arrives, what is asked, and what happens when one breaks."""

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import mcp_types
import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.upstream.tool_list_cache import Listing, ToolListCache
from divingbell.gateway.upstream.upstream import Upstream, _as_many_as_allowed
from divingbell.settings.servers import Server
from tests import real_servers
from tests.gateway.upstreams import (
    Listener,
    alive,
    entry,
    failure_of,
    free_port,
    listening,
    running,
    shop,
    text_of,
    thief,
    web_page,
    web_server,
)
from tests.real_servers import fixture
from tests.waiting import until


@pytest.fixture(scope="module")
async def workshop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Upstream]:
    """One server for the tests that leave it in one piece."""
    async with running(shop(), tmp_path_factory.mktemp("logs")) as upstream:
        await upstream.ready()
        yield upstream


async def test_a_server_of_the_newer_protocol_does_all_that_tools_do(tmp_path: Path) -> None:
    server = shop(env={"SHOP_TOKEN": "hunter22-secret"})
    async with running(server, tmp_path) as upstream:
        await upstream.ready()
        assert upstream.state == "ready"
        assert upstream.protocol_version == "2026-07-28"
        assert upstream.instructions == "A workshop for tests."
        assert "echo" in [tool.name for tool in upstream.tools]

        caller = Listener(answer={"colour": "red"})
        result = await upstream.call_tool("echo", {"text": "hello"}, caller=caller)
        assert result.structured_content == {"result": "hello"}
        await upstream.call_tool("count", {"to": 3}, caller=caller)
        await until(lambda: len(caller.heard) == 3, "three progress messages")
        assert (3.0, 3.0, "step 3") in caller.heard
        await upstream.call_tool("tell", {"text": "by the way"}, caller=caller)
        await until(lambda: caller.logs, "a log message")
        assert caller.logs == ["by the way"]
        assert await text_of(upstream, "paint", {}, caller=caller) == "painted red"
        assert caller.asked[0].message == "Which colour?"

        failed = await upstream.call_tool("fail", {"text": "no"}, caller=caller)
        assert failed.is_error

        assert [str(item.uri) for item in await upstream.list_resources()] == ["shop://sign"]
        assert await upstream.list_resource_templates() == []
        contents = (await upstream.read_resource("shop://sign")).contents[0]
        assert isinstance(contents, mcp_types.TextResourceContents)
        assert contents.text == "welcome, the password is [secret of shop]"
        assert [prompt.name for prompt in await upstream.list_prompts()] == ["greeting"]
        prompt = await upstream.get_prompt("greeting", {"name": "Bo"})
        assert "Greet Bo" in prompt.messages[0].model_dump_json()


async def test_a_changed_list_of_tools_is_announced(workshop: Upstream) -> None:
    await workshop.call_tool("grow", {"name": "weed"})
    await until(lambda: "weed" in [tool.name for tool in workshop.tools], "the new tool")
    assert await text_of(workshop, "weed", {}) == "weed"


async def test_a_call_that_takes_too_long_is_cancelled_at_the_server(workshop: Upstream) -> None:
    error = await failure_of(workshop, "sleep", {"seconds": 60, "name": "late"}, timeout=0.3)
    assert error.code == "tool_timeout"
    assert str(error) == "shop.sleep took longer than 0.3 seconds and was cancelled"

    caller = Listener()
    call = asyncio.create_task(
        workshop.call_tool("sleep", {"seconds": 60, "name": "dropped"}, caller=caller)
    )
    await until(lambda: caller.heard, "the call to be under way")
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    assert call.cancelled()

    names: set[str] = set()
    async with asyncio.timeout(20):
        while names != {"late", "dropped"}:
            result = await workshop.call_tool("cancellations", {})
            assert result.structured_content is not None
            names = set(result.structured_content["result"])


async def test_many_calls_run_at_once(workshop: Upstream) -> None:
    calls = [workshop.call_tool("sleep", {"seconds": 0.5}) for _ in range(50)]
    async with asyncio.timeout(15):  # one after the other they would take 25
        results = await asyncio.gather(*calls)
    assert all(not result.is_error for result in results)


async def test_a_server_that_dies_in_a_call_says_so_and_comes_back(tmp_path: Path) -> None:
    async with running(shop(), tmp_path) as upstream:
        error = await failure_of(upstream, "die", {"status": 3})
        assert error.code == "tool_unavailable"
        assert "died during the call; it may have done what it was asked, or not" in str(error)
        assert "it ended with status 3" in str(error)
        assert "the roof fell in" in str(error)
        # The next attempt is near: the call waits for it.
        assert await text_of(upstream, "echo", {"text": "back"}) == "back"


async def test_a_killed_server_is_started_again(tmp_path: Path) -> None:
    async with running(shop(), tmp_path) as upstream:
        await upstream.ready()
        first = upstream.pid
        assert first is not None
        caller = Listener()
        waiting = asyncio.create_task(failure_of(upstream, "sleep", {"seconds": 60}, caller=caller))
        await until(lambda: caller.heard, "the call to be under way")
        os.kill(first, signal.SIGKILL)
        assert "it was killed by SIGKILL" in str(await waiting)
        assert await text_of(upstream, "echo", {"text": "again"}) == "again"
        assert upstream.pid != first
        assert not alive(first)


async def test_a_server_that_never_starts_fails_fast_and_costs_the_others_nothing(
    tmp_path: Path,
) -> None:
    missing = Server("gone", command="/no/such/program")
    async with running(missing, tmp_path) as upstream, running(shop(), tmp_path) as other:
        with pytest.raises(ToolFailed, match="…/program was not found") as caught:
            await upstream.ready(0.2)
        assert caught.value.code == "tool_unavailable"
        # Code is not told where things are on this machine; whoever runs it is.
        assert "/no/such" not in str(caught.value)
        assert upstream.reason.startswith("/no/such/program was not found")
        assert await text_of(other, "echo", {"text": "fine"}) == "fine"
        # The delays double: before long a call does not wait for the next attempt any more.
        async with asyncio.timeout(30):
            while "the next attempt is in" not in (words := str(caught.value)):
                with pytest.raises(ToolFailed) as caught:
                    await upstream.ready()
        assert "the server gone is not available" in words


async def test_a_server_that_hangs_at_its_start_is_given_up(tmp_path: Path) -> None:
    server = entry(fixture("hanging"), start_timeout=0.5)
    async with running(server, tmp_path) as upstream:
        error = await failure_of(upstream, "work", {})
        assert error.code == "tool_unavailable"
        await until(lambda: upstream.state == "failed", "the end of the attempt")
        assert upstream.reason == "it did not answer within 0.5 seconds of its start"


async def test_a_server_that_dies_at_once_shows_its_last_words(tmp_path: Path) -> None:
    code = "import sys; sys.exit('no configuration found')"
    server = Server("broken", command=fixture("x")[0], args=("-c", code))
    async with running(server, tmp_path) as upstream:
        with pytest.raises(ToolFailed, match="status 1; its last words: no configuration found"):
            await upstream.ready(2)


async def test_a_server_that_dies_of_the_newer_protocol_is_spoken_to_in_the_older(
    tmp_path: Path,
) -> None:
    async with running(entry(fixture("choking")), tmp_path) as upstream:
        assert await text_of(upstream, "work", {}) == "alive"
        assert upstream.protocol_version == "2025-06-18"


async def test_lines_that_are_no_messages_are_skipped(tmp_path: Path) -> None:
    async with running(entry(fixture("babbling")), tmp_path) as upstream:
        assert await text_of(upstream, "work", {}) == "done"


async def test_too_many_lines_that_are_no_messages_end_the_connection(tmp_path: Path) -> None:
    command, arguments = fixture("babbling")
    server = entry((command, [*arguments, "5000"]))
    async with running(server, tmp_path) as upstream:
        error = await failure_of(upstream, "work", {})
        assert error.code == "tool_unavailable"
        assert "lines that are no messages of MCP" in str(error)


async def test_an_answer_that_is_too_long_is_the_error_of_its_call_only(tmp_path: Path) -> None:
    async with running(entry(fixture("endless")), tmp_path) as upstream:
        await upstream.ready()
        pid = upstream.pid
        for size, at in ((33, "first"), (100, "last")):
            error = await failure_of(upstream, "work", {"megabytes": size, "id": at})
            assert error.code == "tool_result"
            assert "the result has more than 32 MB" in str(error)
        assert await text_of(upstream, "work", {"megabytes": 1, "id": "first"}) == "x" * (1 << 20)
        assert upstream.pid == pid


@pytest.mark.parametrize(("size", "at"), [(40, "not asked"), (300, "first"), (40, "nowhere")])
async def test_a_message_that_is_too_long_and_nobodys_ends_the_connection(
    tmp_path: Path, size: int, at: str
) -> None:
    async with running(entry(fixture("endless")), tmp_path) as upstream:
        await upstream.ready()
        error = await failure_of(upstream, "work", {"megabytes": size, "id": at})
        assert error.code == "tool_unavailable"
        assert "it sent a message of more than" in str(error)


@pytest.mark.parametrize(
    ("arguments", "cwd", "hint"),
    [
        (("--db", "shop.db"), None, "for its argument shop.db in /, where servers start: write ./"),
        (("--db=data/shop.sqlite",), None, "shop.sqlite in /, where servers start"),
        (("--db", "shop.db"), "/tmp", ""),
        (("--db", "/data/shop.db", "some-package", "-x.db", "@scope/y", "z@1.2.db"), None, ""),
    ],
)
async def test_a_server_that_fails_is_told_what_its_relative_paths_mean(
    tmp_path: Path, arguments: tuple[str, ...], cwd: str | None, hint: str
) -> None:
    code = "raise SystemExit('no such file')"
    server = Server("shop", command=fixture("x")[0], args=("-c", code, *arguments), cwd=cwd)
    async with running(server, tmp_path) as upstream:
        with pytest.raises(ToolFailed) as caught:
            await upstream.ready(20)
    assert "its last words: no such file" in str(caught.value)
    assert hint in str(caught.value)
    assert ("where servers start" in str(caught.value)) is bool(hint)


async def test_a_server_that_prints_what_is_no_message_is_quoted(tmp_path: Path) -> None:
    secret = "tell-nobody-0123456789"
    code = (
        "import os, sys\nsys.stdout.write('Starting\\x1b[2J at ' + os.environ['API_KEY'])\n"
        "print('', 'x' * 9000, flush=True)\nsys.stdin.read()"
    )
    server = Server(
        "loud",
        command=fixture("x")[0],
        args=("-c", code),
        env={"API_KEY": secret},
        start_timeout=1.0,
    )
    async with running(server, tmp_path) as upstream:
        with pytest.raises(ToolFailed) as caught:
            await upstream.ready(20)
    words = str(caught.value)
    assert (
        "it did not answer within 1 seconds of its start; it printed this on its standard" in words
    )
    assert "where only messages of MCP belong: Starting at [secret of loud] xxx" in words
    assert secret not in words and "\x1b" not in words and "x" * 300 not in words


async def test_answers_that_break_the_protocol_are_errors_of_their_call_only(
    tmp_path: Path,
) -> None:
    async with running(entry(fixture("lying")), tmp_path) as upstream:
        error = await failure_of(upstream, "work", {"lie": "types"})
        assert error.code == "tool_result"
        deep = await upstream.call_tool("work", {"lie": "deep"})
        assert deep.structured_content == {"a": [[[[{"b": None}]]]]}


async def test_a_list_of_tools_that_breaks_the_protocol_is_told(tmp_path: Path) -> None:
    command, arguments = fixture("lying")
    async with running(entry((command, [*arguments, "tools"])), tmp_path) as upstream:
        with pytest.raises(ToolFailed, match="it sends something that is no message of MCP"):
            await upstream.ready(20)


@pytest.mark.parametrize("end", ["ends", "bites its tail"])
async def test_all_pages_of_a_list_are_read_even_if_it_has_no_end(tmp_path: Path, end: str) -> None:
    command, arguments = fixture("paging")
    async with running(entry((command, [*arguments, end])), tmp_path) as upstream:
        await upstream.ready()
        assert len(upstream.tools) == 20


async def test_questions_of_an_older_server_reach_the_one_caller_there_is(tmp_path: Path) -> None:
    async with running(entry(fixture("asking")), tmp_path) as upstream:
        caller = Listener(answer={"name": "Bo"})
        answer = json.loads(await text_of(upstream, "work", {}, caller=caller))
        assert answer == {"action": "accept", "content": {"name": "Bo"}}
        await until(lambda: caller.logs, "the log message")
        assert caller.logs == ["before asking"]


async def test_questions_are_declined_when_they_could_be_for_two(tmp_path: Path) -> None:
    async with running(entry(fixture("asking")), tmp_path) as upstream:
        await upstream.ready()
        one, two = Listener("one", {"name": "Bo"}), Listener("two", {"name": "Al"})
        first = asyncio.create_task(text_of(upstream, "work", {}, caller=one))
        second = asyncio.create_task(failure_of(upstream, "work", {}, caller=two, timeout=5))
        # The server takes one call at a time, and loses the second while it waits for an answer.
        assert "can't be said which caller this is for" in await first
        assert not one.asked and not two.asked and not one.logs and not two.logs
        second.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await second


async def test_a_flood_of_questions_reaches_nobody_after_a_while(tmp_path: Path) -> None:
    async with running(entry(fixture("nagging")), tmp_path) as upstream:
        caller = Listener(answer={})
        assert await text_of(upstream, "work", {}, caller=caller) == "50"
        assert len(caller.asked) == 50


async def test_the_clock_of_a_call_stands_still_while_a_person_thinks(workshop: Upstream) -> None:
    class Slow(Listener):
        async def elicit(self, params: object) -> mcp_types.ElicitResult | mcp_types.ErrorData:
            await asyncio.sleep(1.0)
            return await super().elicit(params)

    caller = Slow(answer={"colour": "blue"})
    painted = await text_of(workshop, "paint", {}, caller=caller, timeout=0.8)
    assert painted == "painted blue"


async def test_secrets_are_in_no_result_error_log_or_description(tmp_path: Path) -> None:
    secret = "tOkEn-4711-abcdef"
    async with running(shop(env={"SHOP_TOKEN": secret}), tmp_path) as upstream:
        caller = Listener()
        seen = await upstream.call_tool("environment", {}, caller=caller)
        assert seen.structured_content is not None
        assert seen.structured_content["SHOP_TOKEN"] == "[secret of shop]"
        await upstream.call_tool("tell", {"text": f"it is {secret}"}, caller=caller)
        await until(lambda: caller.logs, "the log message")
        await upstream.call_tool("complain", {"text": f"oh no, {secret}"})
        wrong = await upstream.call_tool("sleep", {"seconds": secret})
        assert wrong.is_error
        error = await failure_of(upstream, "die", {"status": 4, "words": f"bye {secret}"})
        everything = seen.model_dump_json() + repr(caller.logs) + str(error)
        everything += wrong.model_dump_json() + upstream.reason
        await until(lambda: "oh no" in upstream.log_path.read_text(), "the line in the log")
        assert secret not in everything + upstream.log_path.read_text() + repr(upstream.server)


async def test_a_known_list_is_announced_at_once_and_the_server_starts_with_the_first_call(
    tmp_path: Path,
) -> None:
    cache = ToolListCache(tmp_path / "cache")
    async with running(shop(), tmp_path, tool_list_cache=cache) as upstream:
        await upstream.ready()
        await upstream.call_tool("grow", {"name": "weed"})
        await until(lambda: len(upstream.lists) == 2, "the second list")
    async with running(shop(), tmp_path, tool_list_cache=cache) as upstream:
        assert "weed" in upstream.lists[0]
        assert upstream.instructions == "A workshop for tests."
        assert (upstream.state, upstream.pid) == ("idle", None)
        assert await text_of(upstream, "echo", {"text": "awake"}) == "awake"
        # The list was checked with the start: the tool was never planted in this one.
        assert "weed" not in upstream.lists[-1]


async def test_a_list_is_kept_beside_the_event_loop(tmp_path: Path) -> None:
    threads: list[int] = []

    class Watched(ToolListCache):
        def store(self, server: Server, listing: Listing) -> None:
            threads.append(threading.get_ident())
            super().store(server, listing)

    cache = Watched(tmp_path / "cache")
    async with running(shop(), tmp_path, tool_list_cache=cache) as upstream:
        await upstream.ready()
        assert cache.load(upstream.server) is not None
    assert threads
    assert threading.get_ident() not in threads


async def test_stopping_ends_calls_and_starts_nothing_again(tmp_path: Path) -> None:
    async with running(shop(), tmp_path) as upstream:
        await upstream.ready()
        pid = upstream.pid
        assert pid is not None
        caller = Listener()
        waiting = asyncio.create_task(failure_of(upstream, "sleep", {"seconds": 60}, caller=caller))
        await until(lambda: caller.heard, "the call to be under way")
        await upstream.stop()
        assert (await waiting).code == "tool_unavailable"
        assert not alive(pid)
        assert "it was stopped" in str(await failure_of(upstream, "echo", {"text": ""}))


async def test_ten_servers_start_at_once(tmp_path: Path) -> None:
    command, arguments = fixture("slow_start")
    async with contextlib.AsyncExitStack() as stack:
        servers = [entry((command, [*arguments, "1.5"]), f"s{number}") for number in range(10)]
        upstreams = [
            await stack.enter_async_context(running(server, tmp_path)) for server in servers
        ]
        async with asyncio.timeout(12):  # one after the other they would take 15
            await asyncio.gather(*(upstream.ready() for upstream in upstreams))


# Over HTTP.


async def test_a_server_at_an_address_is_followed_and_found_again_after_its_restart(
    tmp_path: Path,
) -> None:
    port = free_port()
    command, arguments = fixture("workshop")
    web = (command, [*arguments, "streamable-http", str(port)])
    server = Server("shop", url=f"http://127.0.0.1:{port}/mcp", transport="http")
    async with running(server, tmp_path) as upstream:
        with pytest.raises(ToolFailed, match="nothing answers at http"):
            await upstream.ready(1)
        with web_server(web):
            await listening(port)
            upstream.retry()
            assert await text_of(upstream, "echo", {"text": "hello"}) == "hello"
            await upstream.call_tool("grow", {"name": "weed"})
            await until(lambda: "weed" in upstream.lists[-1], "the new tool")
            error = await failure_of(upstream, "sleep", {"seconds": 60}, timeout=0.3)
            assert error.code == "tool_timeout"
            names = await upstream.call_tool("cancellations", {})
            assert names.structured_content is not None
            dying = await failure_of(upstream, "die", {})
            assert dying.code == "tool_unavailable"
        with web_server(web):
            await listening(port)
            upstream.retry()
            assert await text_of(upstream, "echo", {"text": "again"}) == "again"


async def test_an_error_page_that_quotes_the_token_is_cleaned(tmp_path: Path) -> None:
    port = free_port()
    command, arguments = fixture("reflecting")
    with web_server((command, [*arguments, str(port), "1"])):
        await listening(port)
        headers = {"Authorization": "Bearer s3cr3t-t0ken-value"}
        server = Server(
            "mirror", url=f"http://127.0.0.1:{port}/401", transport="http", headers=headers
        )
        async with running(server, tmp_path) as upstream:
            with pytest.raises(ToolFailed) as caught:
                await upstream.ready(1)
            assert "your header was [secret of mirror]" in str(caught.value)
            seen = str(caught.value) + upstream.reason + upstream.log_path.read_text()
            assert "s3cr3t-t0ken-value" not in seen


async def test_a_redirect_does_not_carry_the_token_to_another_address(tmp_path: Path) -> None:
    port = free_port()
    command, arguments = fixture("reflecting")
    with thief() as (place, stolen), web_server((command, [*arguments, str(port), str(place)])):
        await listening(port)
        headers = {"Authorization": "Bearer s3cr3t-t0ken-value"}
        server = Server(
            "mirror", url=f"http://127.0.0.1:{port}/away", transport="http", headers=headers
        )
        async with running(server, tmp_path) as upstream:
            with pytest.raises(ToolFailed, match="not followed"):
                await upstream.ready(1)
        assert stolen == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/bomb", "more than 32 MB"),
        ("/zip", "compressed"),
        ("/values", "too many lists"),
        ("/events", "too many lists"),
    ],
)
async def test_an_answer_over_http_has_an_end(tmp_path: Path, path: str, words: str) -> None:
    port = free_port()
    command, arguments = fixture("reflecting")
    with web_server((command, [*arguments, str(port), "1"])):
        await listening(port)
        server = Server("bomb", url=f"http://127.0.0.1:{port}{path}", transport="http")
        async with running(server, tmp_path) as upstream:
            with pytest.raises(ToolFailed, match=words):
                await upstream.ready()


# Servers that others wrote.


async def test_everything_over_stdio(tmp_path: Path) -> None:
    async with running(entry(real_servers.everything(), "everything"), tmp_path) as upstream:
        await _everything(upstream)


@pytest.mark.parametrize(("transport", "path"), [("streamableHttp", "/mcp"), ("sse", "/sse")])
async def test_everything_over_http(tmp_path: Path, transport: str, path: str) -> None:
    port = free_port()
    environment = {**os.environ, "PORT": str(port)}
    with web_server(real_servers.everything(transport), environment):
        await listening(port)
        kind = "sse" if transport == "sse" else "http"
        server = Server("everything", url=f"http://127.0.0.1:{port}{path}", transport=kind)
        async with running(server, tmp_path) as upstream:
            await _everything(upstream)


async def test_a_server_at_an_address_that_lost_its_sessions_is_greeted_again(
    tmp_path: Path,
) -> None:
    port = free_port()
    environment = {**os.environ, "PORT": str(port)}
    command = real_servers.everything("streamableHttp")
    server = Server("everything", url=f"http://127.0.0.1:{port}/mcp", transport="http")
    async with running(server, tmp_path) as upstream:
        with web_server(command, environment):
            await listening(port)
            assert await text_of(upstream, "echo", {"message": "hi"}) == "Echo: hi"
        with web_server(command, environment):
            await listening(port)

            async def is_greeted() -> bool:
                try:
                    return await text_of(upstream, "echo", {"message": "again"}) == "Echo: again"
                except ToolFailed:  # it took so long to start that the next attempt is a while off
                    return False

            await until(is_greeted, "the server is greeted again")


async def _everything(upstream: Upstream) -> None:
    await upstream.ready()
    caller = Listener(answer={"name": "Bo", "check": True})
    names = [tool.name for tool in upstream.tools]
    assert await text_of(upstream, "echo", {"message": "hi"}, caller=caller) == "Echo: hi"
    slow = next(name for name in names if "long" in name.lower())
    await upstream.call_tool(slow, {"duration": 1, "steps": 4}, caller=caller)
    await until(lambda: len(caller.heard) >= 4, "the progress of a long operation")
    image = await upstream.call_tool(next(n for n in names if "image" in n.lower()), {})
    assert any(block.type == "image" for block in image.content)
    assert await upstream.list_resources()
    assert await upstream.list_prompts()
    asking = [name for name in names if "elicit" in name.lower()]
    assert asking
    await upstream.call_tool(asking[0], {}, caller=caller)
    assert caller.asked


async def test_the_other_servers_from_npm(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    files = entry(real_servers.filesystem(tmp_path), "files")
    memory = entry(
        real_servers.memory(), "memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}
    )
    async with running(files, tmp_path) as one, running(memory, tmp_path) as two:
        path = str(tmp_path / "note.txt")
        assert "hello" in await text_of(one, "read_text_file", {"path": path})
        entity = {"name": "Bo", "entityType": "person", "observations": ["likes tea"]}
        await two.call_tool("create_entities", {"entities": [entity]})
        assert "likes tea" in await text_of(two, "read_graph", {})


async def test_the_servers_from_pypi(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    process = await asyncio.create_subprocess_exec("git", "init", "-q", str(repository))
    assert await process.wait() == 0
    with web_page(tmp_path) as address:
        servers = [
            entry(real_servers.git(repository), "git"),
            entry(real_servers.time(), "time"),
            entry(real_servers.fetch(), "fetch"),
            entry(real_servers.sqlite(tmp_path / "shop.db"), "sqlite"),
        ]
        async with contextlib.AsyncExitStack() as stack:
            git, clock, fetch, sqlite = [
                await stack.enter_async_context(running(server, tmp_path)) for server in servers
            ]
            await asyncio.gather(*(one.ready() for one in (git, clock, fetch, sqlite)))
            status = await text_of(git, "git_status", {"repo_path": str(repository)})
            assert "No commits yet" in status
            now = await text_of(clock, "get_current_time", {"timezone": "Asia/Tokyo"})
            assert "Asia/Tokyo" in now
            await sqlite.call_tool("create_table", {"query": "CREATE TABLE pet (name TEXT)"})
            assert "pet" in await text_of(sqlite, "list_tables", {})
            assert "a small page" in await text_of(fetch, "fetch", {"url": address})


def test_a_completion_has_no_more_values_than_the_protocol_allows() -> None:
    many = mcp_types.Completion(values=[str(number) for number in range(1000)])
    fewer = _as_many_as_allowed(mcp_types.CompleteResult(completion=many)).completion
    assert fewer.values == many.values[:100] and fewer.has_more
    few = mcp_types.CompleteResult(completion=fewer)
    assert _as_many_as_allowed(few) is few


async def test_a_server_that_only_prints_is_not_tried_in_another_way(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = f"echo start >> '{starts}'; while true; do echo 'hello I am garbage'; done"
    async with running(Server("x", command="sh", args=("-c", code)), tmp_path) as upstream:
        with pytest.raises(ToolFailed, match="messages of MCP belong: hello I am garbage"):
            await upstream.ready()
        assert starts.read_text() == "start\n"
