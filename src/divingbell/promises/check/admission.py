"""The door of the gateway: which calls pass, by any name, in any order, at any time, for any
user."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable

import mcp_types as types
from mcp import MCPError

from divingbell.gateway.context import key_of
from divingbell.principal import Principal
from divingbell.promises.check.rig import SAMPLE, PromiseBroken, expect, judged
from divingbell.promises.check.tool_rig import NAGGING, NAME, SWELLING, ToolRig, tool_checks
from divingbell.session.session import Session
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.passthrough.call_contexts import session_of
from divingbell.surfaces.mcp.passthrough.passthrough import Passthrough

_PATIENCE = 20.0
_METHODS = (
    "completion/complete", "resources/list", "resources/templates/list", "resources/read",
    "prompts/list", "prompts/get",
)  # fmt: skip


def _passing(rig: ToolRig, *servers: str) -> Passthrough:
    return Passthrough(rig.bell.gateway, dict.fromkeys(servers, ("*",)), _PATIENCE)


def _asked_directly(passing: Passthrough, person: ClientChannel) -> list[Awaitable[object]]:
    """All requests that a client can make of a server besides calls of its tools."""
    ref = types.PromptReference(name="plan")
    argument = types.CompletionArgument(name="x", value="y")
    completion = types.CompleteRequestParams(ref=ref, argument=argument)
    return [
        passing.complete(completion, person),
        passing.resources(person),
        passing.templates(person),
        passing.read("notes://mine", person),
        passing.prompts(person),
        passing.prompt("plan", {}, person),
    ]


@tool_checks("T60")
async def requests_of_clients(rig: ToolRig) -> str:
    passing = _passing(rig, NAME)
    async with rig.session() as session:
        for user, reached in (("outsider", 0), ("insider", 1)):
            before = [await rig.counted(session, method) for method in _METHODS]
            person = ClientChannel(Principal(user, "T60"))
            for asked in _asked_directly(passing, person):
                try:
                    await asked
                except MCPError as error:
                    expect(not reached and "policy" in str(error), f"{user}: {error}")
            after = [await rig.counted(session, method) for method in _METHODS]
            made = dict(zip(_METHODS, map(int.__sub__, after, before), strict=True))
            expect(set(made.values()) == {reached}, f"the server was asked by the {user}: {made}")
            key = key_of(person.principal, session_of(person.principal))
            counted = rig.bell.gateway.pipeline.meter.used(key)
            expect(counted == len(_METHODS), f"{counted} of {len(_METHODS)} requests count")
    await passing.contexts.leave("T60")
    return f"{len(_METHODS)} kinds of requests are decided and counted as calls are"


@tool_checks("T61")
async def what_the_person_sees(rig: ToolRig) -> str:
    code = (
        f"call_mcp_tool('{NAME}.shown', {{'secret_path': 's-1', 'page_token': 'p-1'}}"
        " | {f'a{n}': 'harmless ' * 400 for n in range(8)} | {'f0': 'DELETE EVERYTHING'})"
    )
    async with rig.session() as session:
        result = await session.run(code)
        expect("denied by the person" in str(result.error), f"not asked: {result.error}")
        asked = [approval for approval in rig.asked if approval.tool == f"{NAME}.shown"]
        *long, order, page, path = asked[-1].arguments.splitlines()
        expect([line[:2] for line in long] == [f"a{n}" for n in range(8)], "not in order")
        expect(order == 'f0: "DELETE EVERYTHING"', f"it is shown as {order[:100]}")
        expect((page, path) == ('page_token: "p-1"', 'secret_path: "s-1"'), "a value is hidden")
        many = await session.run(
            f"call_mcp_tool('{NAME}.careful', {{f'n{{n}}': n for n in range(999)}})"
        )
        expect("send fewer" in str(many.error), f"999 arguments: {many.error}")
    return "every name, in the order of the schema; what can't be shown is not asked about"


@contextlib.asynccontextmanager
async def _open_question(rig: ToolRig, session: Session) -> AsyncIterator["asyncio.Future[str]"]:
    """A call in a thread that is asked about; the person says what the future is set to."""
    code = (
        "import threading\n"
        f"thread = threading.Thread(target=call_mcp_tool, args=('{NAME}.late',))\nthread.start()"
    )
    answer, deadline = asyncio.get_running_loop().create_future(), time.monotonic() + _PATIENCE
    rig.answers[f"{NAME}.late"], before = answer, len(rig.asked)
    try:
        await rig.value(session, code)
        while not any(approval.tool == f"{NAME}.late" for approval in rig.asked[before:]):
            expect(time.monotonic() < deadline, "nobody was asked")
            await asyncio.sleep(SAMPLE)
        yield answer
    finally:
        rig.answers.pop(f"{NAME}.late", None)


@tool_checks("T62")
async def late_answers(rig: ToolRig) -> str:
    async with rig.session() as session:
        before = await rig.counted(session, "late")
        async with _open_question(rig, session) as answer:
            answer.set_result("always")
        again = await session.run(f"thread.join()\ncall_mcp_tool('{NAME}.late')")
        expect("denied by the person" in str(again.error), f"not asked again: {again.error}")
        made = await rig.counted(session, "late")
        expect(made == before + 1, "the first call was not made")
    return "the next cell is asked about again"


@tool_checks("T66")
async def questions_of_another_user(rig: ToolRig) -> str:
    async with (
        rig.session(user="ann") as one,
        rig.session(user="ben") as other,
        _open_question(rig, one),
    ):
        try:
            async with asyncio.timeout(_PATIENCE):
                asked = await other.run(f"call_mcp_tool('{NAME}.careful')")
        except TimeoutError:
            raise PromiseBroken("the other user's call waits behind the open question") from None
        expect("denied by the person" in str(asked.error), f"not asked: {asked.error}")
    return "another user is asked while a question of the first is open"


@tool_checks("T63")
async def bound_arguments_respelled(rig: ToolRig) -> str:
    async with rig.session(user="ann") as session:
        before = await rig.counted(session, "lenient")
        words = judged(await rig.run(session, "T63.py", USER="ann"))
        expect(await rig.counted(session, "lenient") == before + 1, "the server was called")
    return words


@tool_checks("T64")
async def conditions_stepped_around(rig: ToolRig) -> str:
    async with rig.session() as session:
        before = await rig.counted(session, "write")
        words = judged(await rig.run(session, "T64.py"))
        expect(await rig.counted(session, "write") == before + 2, "the server was called")
    return words


@tool_checks("T65")
async def addresses_of_two_servers(rig: ToolRig) -> str:
    servers = NAGGING, SWELLING  # the same program twice
    passing, person = _passing(rig, *servers), ClientChannel(Principal("insider", "T65"))
    listed = [each.uri for each in await passing.resources(person) if each.name == "mine"]
    templates = [
        each.uri_template for each in await passing.templates(person) if each.name == "any"
    ]
    expect(len(set(listed)) == len(set(templates)) == 2, f"listed: {listed}, {templates}")
    for uri, server in zip(listed, servers, strict=True):
        [content] = (await passing.read(uri, person)).contents
        pid = str(rig.bell.gateway.fleet.upstream(server).pid)
        expect(getattr(content, "text", "") == pid, f"{uri} is not read from {server}")
    try:
        await passing.read("notes://mine", person)
    except MCPError:
        return "each address leads to its own server, and the one that both list to none"
    finally:
        await passing.contexts.leave("T65")
    raise PromiseBroken("an address without its server was read")


@tool_checks("D60")
async def tools_of_another_user(rig: ToolRig) -> str:
    async with rig.session(user="ben") as other, rig.session(user="ann") as own:
        words = judged(await rig.run(other, "D60.py"))
        passing = _passing(rig, NAME)
        expect(passing.schema_of("private", "ann") is not None, "ann can't call it directly")
        expect(passing.schema_of("private", "ben") is None, "its headers tell ben of it")
        expect(f"{NAME}.private" in await rig.value(own, "list_mcp_tools()"), "ann can't see it")
        await rig.value(own, f"from servers.{NAME} import private; private()")
    return words


@tool_checks("D61")
async def names_that_python_has(rig: ToolRig) -> str:
    async with rig.session() as session:
        words = judged(await rig.run(session, "D61.py"))
        await rig.value(session, f"servers.{NAME}.open()")
    return words
