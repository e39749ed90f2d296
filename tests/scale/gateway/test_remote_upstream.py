"""Servers in the shared gateway, as replicas use them: over a real line, with real servers."""

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator

import mcp_types
import pytest

from divingbell.errors import NotRecorded, ToolFailed
from divingbell.gateway.upstream.transport.departure import Departure
from divingbell.gateway.upstream.upstream import Upstream
from divingbell.scale.gateway import link as gateway_link
from divingbell.scale.gateway.remote_upstream import RemoteUpstream
from divingbell.settings.servers import Server
from tests.gateway.upstreams import Listener, alive, entry, failure_of, shop, text_of
from tests.real_servers import fixture
from tests.scale.gateway import hosts
from tests.waiting import until


async def kept() -> None:
    """Keep a record at once."""


@contextlib.asynccontextmanager
async def two_replicas(
    server: Server,
) -> AsyncIterator[tuple[hosts.Hosts, RemoteUpstream, RemoteUpstream]]:
    async with (
        hosts.running(server) as found,
        hosts.linked(found) as one,
        hosts.linked(found) as two,
        hosts.upstream(one, server) as (first, _),
        hosts.upstream(two, server) as (second, _),
    ):
        yield found, first, second


def test_it_has_every_public_name_of_an_upstream() -> None:
    def names(kind: type) -> dict[str, object]:
        found = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
        return {
            name: list(inspect.signature(each).parameters) if callable(each) else "a value"
            for name, each in found.items()
        }

    remote = names(RemoteUpstream)
    assert remote.pop("spool") == "a value"  # of an Upstream it is set when it is made
    assert remote == names(Upstream)


async def test_a_server_elsewhere_does_all_that_one_here_does() -> None:
    server = shop(env={"SHOP_TOKEN": "hunter22-secret"})
    async with (
        hosts.running(server) as found,
        hosts.linked(found) as link,
        hosts.upstream(link, server) as (upstream, heard),
    ):
        await upstream.ready()
        assert (upstream.state, heard.states) == ("ready", ["connecting", "ready"])
        assert upstream.protocol_version == "2026-07-28"
        assert upstream.instructions == "A workshop for tests."
        assert upstream.reason == ""
        assert "echo" in [tool.name for tool in upstream.tools]
        assert heard.lists == [[tool.name for tool in upstream.tools]]
        assert upstream.log_path.exists()

        caller = Listener(answer={"colour": "red"})
        allowed = Departure(kept)
        result = await upstream.call_tool(
            "echo", {"text": "hello"}, caller=caller, departure=allowed
        )
        assert result.structured_content == {"result": "hello"}
        assert allowed.is_allowed
        await upstream.call_tool("count", {"to": 3}, caller=caller)
        await until(lambda: len(caller.heard) == 3, "three progress messages")
        assert (3.0, 3.0, "step 3") in caller.heard
        await upstream.call_tool("tell", {"text": "by the way"}, caller=caller)
        await until(lambda: caller.logs, "a log message")
        assert caller.logs == ["by the way"]
        assert await text_of(upstream, "paint", {}, caller=caller) == "painted red"
        assert caller.asked[0].message == "Which colour?"
        assert (await upstream.call_tool("fail", {"text": "no"}, caller=caller)).is_error

        assert [str(item.uri) for item in await upstream.list_resources()] == ["shop://sign"]
        assert await upstream.list_resource_templates() == []
        contents = (await upstream.read_resource("shop://sign")).contents[0]
        assert isinstance(contents, mcp_types.TextResourceContents)
        assert contents.text == "welcome, the password is [secret of shop]"
        assert [prompt.name for prompt in await upstream.list_prompts()] == ["greeting"]
        prompt = await upstream.get_prompt("greeting", {"name": "Bo"})
        assert "Greet Bo" in prompt.messages[0].model_dump_json()
        ref = mcp_types.PromptReference(type="ref/prompt", name="greeting")
        with pytest.raises(ToolFailed):  # this server completes nothing
            await upstream.complete(ref, mcp_types.CompletionArgument(name="name", value="B"))


async def test_replicas_have_one_process_and_hear_of_each_change() -> None:
    async with two_replicas(shop()) as (_, first, second):
        await first.ready()
        await second.ready()
        assert first.pid is not None and first.pid == second.pid
        await first.call_tool("grow", {"name": "weed"})
        for each in (first, second):
            await until(lambda each=each: "weed" in [tool.name for tool in each.tools], "the tool")
        await first.stop()  # one replica leaves, and the server stays for the other
        assert await text_of(second, "echo", {"text": "still here"}) == "still here"
        assert "it was stopped" in str(await failure_of(first, "echo", {"text": ""}))


async def test_a_session_has_one_connection_of_its_own_at_whichever_replica() -> None:
    server = shop(per_session=True)
    async with (
        hosts.running(server) as found,
        hosts.linked(found) as one,
        hosts.linked(found) as two,
        hosts.upstream(one, server, "anne") as (first, _),
        hosts.upstream(two, server, "anne") as (second, _),
        hosts.upstream(two, server, "bert") as (other, _),
    ):
        for each in (first, second, other):
            await each.ready()
        pid, others = first.pid, other.pid
        assert pid is not None and pid == second.pid
        assert others is not None and others != pid
        await first.stop()
        assert await text_of(second, "echo", {"text": "here"}) == "here"
        assert alive(pid)
        await second.stop()
        await until(lambda: not alive(pid), "the end of what nobody has any more")
        assert alive(others)


async def test_a_call_leaves_once_its_record_is_kept() -> None:
    record: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def late() -> None:
        await record

    async def never() -> None:
        raise NotRecorded("the disk is full")

    async with two_replicas(shop()) as (_, first, second):
        await first.ready()
        waiting, caller = Departure(late), Listener()
        call = asyncio.create_task(
            first.call_tool("count", {"to": 1}, caller=caller, departure=waiting)
        )
        # What is sent later, and returns, shows that the first was not held back by the line.
        assert await text_of(second, "echo", {"text": "a"}, departure=Departure(kept)) == "a"
        assert waiting.is_held and not waiting.is_allowed and not caller.heard
        record.set_result(None)
        assert not (await call).is_error
        assert waiting.is_allowed

        refused = Departure(never)
        with pytest.raises(NotRecorded, match="the disk is full"):
            await first.call_tool("grow", {"name": "never"}, departure=refused)
        assert refused.is_held and not refused.is_allowed
        assert await text_of(first, "echo", {"text": "b"}) == "b"
        assert "never" not in [tool.name for tool in first.tools]


async def test_what_is_cancelled_or_whose_replica_has_gone_is_cancelled_at_the_server() -> None:
    async with two_replicas(shop()) as (found, first, second):
        caller = Listener()
        call = asyncio.create_task(
            first.call_tool("sleep", {"seconds": 60, "name": "dropped"}, caller=caller)
        )
        await until(lambda: caller.heard, "the call to be under way")
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        async with hosts.linked(found) as gone, hosts.upstream(gone, shop()) as (third, _):
            caller = Listener()
            lost = asyncio.create_task(
                failure_of(third, "sleep", {"seconds": 60, "name": "lost"}, caller=caller)
            )
            await until(lambda: caller.heard, "the call to be under way")
            gone.laid().lose("its machine was switched off")
            assert (await lost).code == "tool_unavailable"

        async def both() -> bool:
            result = await second.call_tool("cancellations", {})
            assert result.structured_content is not None
            return set(result.structured_content["result"]) == {"dropped", "lost"}

        await until(both, "the server hears of both")


async def test_a_question_is_put_by_the_replica_that_runs_the_call_and_to_nobody_in_doubt() -> None:
    server = entry(fixture("asking"))
    async with two_replicas(server) as (_, first, second):
        one, two = Listener("one", {"name": "Bo"}), Listener("two", {"name": "Al"})
        answer = json.loads(await text_of(second, "work", {}, caller=two))
        assert answer == {"action": "accept", "content": {"name": "Al"}}
        assert two.asked and not one.asked
        two.asked.clear()
        # This server's questions name no call. With two of them on their way nobody is asked.
        calls = [
            asyncio.create_task(first.call_tool("work", {}, caller=one, timeout=5)),
            asyncio.create_task(second.call_tool("work", {}, caller=two, timeout=5)),
        ]
        done, others = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert "can't be said which caller" in done.pop().result().model_dump_json()
        assert not one.asked and not two.asked
        for other in others:
            other.cancel()
        await asyncio.wait(calls)


async def test_a_gateway_that_goes_fails_what_is_under_way_and_is_found_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = shop()
    async with (
        hosts.running(server) as found,
        hosts.linked(found) as link,
        hosts.upstream(link, server) as (upstream, heard),
    ):
        await upstream.ready()
        pid, caller = upstream.pid, Listener()
        call = asyncio.create_task(failure_of(upstream, "sleep", {"seconds": 60}, caller=caller))
        await until(lambda: caller.heard, "the call to be under way")
        await found.stop()
        error = await call
        assert error.code == "tool_unavailable"
        assert "it may have been made, or not" in str(error)
        await until(lambda: upstream.state == "connecting", "the replica notices")
        assert "the gateway of all replicas is away" in upstream.reason

        monkeypatch.setattr(gateway_link, "PATIENCE", 0.1)
        error = await failure_of(upstream, "echo", {"text": "a"}, departure=Departure(kept))
        assert error.code == "tool_unavailable"
        assert "so no call was made (nobody is there). Try again in a minute" in str(error)

        monkeypatch.setattr(gateway_link, "PATIENCE", 20.0)
        await found.start()
        assert await text_of(upstream, "echo", {"text": "again"}) == "again"
        assert upstream.pid != pid
        assert heard.states.count("ready") == 2


async def test_a_server_that_is_not_there_is_told_as_it_is_here() -> None:
    server = Server("gone", command="/no/such/program")
    async with (
        hosts.running(server) as found,
        hosts.linked(found) as link,
        hosts.upstream(link, server) as (upstream, _),
        hosts.upstream(link, shop(name="unknown")) as (unknown, _),
    ):
        with pytest.raises(ToolFailed, match="…/program was not found"):
            await upstream.ready(5)
        await until(lambda: upstream.state == "failed", "the news")
        assert upstream.reason.startswith("/no/such/program was not found")
        await until(lambda: unknown.state == "failed", "the refusal")
        assert unknown.reason == "there is no server 'unknown' here"
