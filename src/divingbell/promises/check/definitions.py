"""Definitions of tools, and results that come back from them: all of it is data of others."""

import asyncio
import time

from divingbell.models import MB
from divingbell.promises.check.rig import SAMPLE, Watch, expect, judged, local_of
from divingbell.promises.check.tool_rig import NAGGING, NAME, SWELLING, ToolRig, tool_checks
from divingbell.session.session import Session

_PATIENCE = 20.0
_PAUSE = 0.2
_MANY_TOOLS = 3_000
"""In one page of its list. Some more, and the page is too heavy to be parsed."""
_MOST_FOUND = 1_000_000
_VERY_MANY = 7_000_000
"""Empty lists: twenty megabytes to send, half a gigabyte to hold."""
_NAG_MEMORY = 64 * MB
"""Forty thousand questions that are kept make twice as much."""
MOST_ERROR = 50_000
"""Characters of a failed result, whatever the server said."""


@tool_checks("D01")
async def orders_in_results(rig: ToolRig) -> str:
    async with rig.session() as session:
        before = await rig.counted(session, "forbidden")
        result = await session.run(f"servers.{NAME}.obey()")
        expect("Ignore all previous" in str(result.value), f"the result is {result.value!r}")
        names = [call.name for call in result.calls]
        expect(names == [f"{NAME}.obey"], f"the result says it comes from {names}")
        again = await session.run(f"call_mcp_tool('{NAME}.forbidden')")
        expect("denied by policy" in str(again.error), f"policy has changed: {again.error}")
        expect(await rig.counted(session, "forbidden") == before, "the order was obeyed")
    return "a text like any other, with the tool's name beside it; the rules are the same"


@tool_checks("D02")
async def hidden_characters(rig: ToolRig) -> str:
    flagged = [line for line in rig.recorder.lines if f"{NAME}.poisoned" in line]
    expect(bool(flagged), "the description was not flagged")
    expect("tag characters" in flagged[0], f"flagged as {flagged[0]}")
    async with rig.session() as session:
        return judged(await rig.run(session, "D02.py"))


@tool_checks("D03")
async def changed_definitions(rig: ToolRig) -> str:
    async with rig.session() as session:
        rig.answer = "session"
        try:
            for _ in range(2):
                await rig.value(session, f"servers.{NAME}.asked(); servers.{NAME}.changing()")
            asked = [approval for approval in rig.asked if approval.tool == f"{NAME}.asked"]
            expect(len(asked) == 1, f"asked {len(asked)} times about one definition")
            await _changed(rig, session)
            events = [e async for e in session.stream(f"servers.{NAME}.changing()")]
            told = [event.text or "" for event in events if event.type == "log"]
            expect(any("definition has changed" in words for words in told), f"told: {told}")
            rig.answer = False
            result = await session.run(f"servers.{NAME}.asked()")
            expect("denied by the person" in str(result.error), f"it was not asked: {result.error}")
            expect("has changed" in rig.asked[-1].reason, f"asked: {rig.asked[-1].reason}")
        finally:
            rig.answer = False
    return "a tool that was approved is asked about again, one that was not is warned about"


async def _changed(rig: ToolRig, session: Session) -> None:
    def description() -> str:
        return rig.bell.gateway.catalog.find(f"{NAME}.changing").description

    before, deadline = description(), time.monotonic() + _PATIENCE
    await rig.value(session, f"servers.{NAME}.change()")
    while description() == before:
        expect(time.monotonic() < deadline, "the new list of tools was not heard of")
        await asyncio.sleep(SAMPLE)


@tool_checks("D05")
async def names_that_break_source(rig: ToolRig) -> str:
    gateway = rig.bell.gateway
    tools = [
        tool for tool in gateway.catalog.tools(NAME) if gateway.policy.audience(tool) == "everyone"
    ]
    async with rig.session() as session:
        return judged(await rig.run(session, "D05.py", COUNT=len(tools)))


@tool_checks("D07", alone=True)
async def schema_bombs(rig: ToolRig) -> str:
    async with rig.session() as session:
        async with Watch() as watch:
            words = judged(await rig.run(session, "D07.py"))
        expect(rig.trapped == 0, f"{rig.trapped} connections to an address in a schema")
    return f"{words}; nothing was fetched; {watch.judge()}"


@tool_checks("D40", alone=True)
async def questions_without_end(rig: ToolRig) -> str:
    code = (
        "try: print(call_mcp_tool('{}.nag', {{'method': 'ping'}}))\n"
        "except ToolError as error: print(error.code)"
    )
    async with rig.session() as session:
        async with Watch() as watch:
            result = await session.run(code.format(NAGGING), timeout=_PATIENCE)
        words = watch.judge()
        expect(watch.memory < _NAG_MEMORY, f"questions are kept: {words}")
        expect(result.status == "ok", f"there was no answer: {result.status} {result.error}")
        await rig.value(session, f"servers.{NAME}.echo('the others')")
    return f"{result.text.strip()}; {words}"


@tool_checks("D41", alone=True)
async def lists_without_end(rig: ToolRig) -> str:
    gateway = rig.bell.gateway
    await gateway.fleet.wait_for_tools(SWELLING)
    before = len(gateway.catalog.tools(SWELLING))
    seen = 0

    def heard(_: str, server: str) -> None:
        nonlocal seen
        if server == SWELLING:
            seen = len(gateway.catalog.tools(SWELLING))

    undo = gateway.on_change(heard)
    try:
        async with rig.session() as session, Watch() as watch:
            await rig.value(session, f"servers.{SWELLING}.swell({_MANY_TOOLS})")
            deadline = time.monotonic() + _PATIENCE
            while seen <= before:
                expect(time.monotonic() < deadline, "the new list was not heard of")
                await asyncio.sleep(SAMPLE)
            for _ in range(5):  # while it changes on and on
                await rig.value(session, f"servers.{NAME}.echo('the others')")
                await asyncio.sleep(_PAUSE)
        words = watch.judge()
    finally:
        undo()
        await gateway.remove(SWELLING)
    return f"{seen:,} tools are known; {words}"


@tool_checks("D50", alone=True)
async def results_to_choke_on(rig: ToolRig) -> str:
    gateway = rig.bell.gateway
    before = gateway.fleet.upstream(NAME).pid
    async with rig.session() as session:
        async with Watch() as watch:
            codes = [await _flooded(session, NAME, values) for values in (50_000, _VERY_MANY)]
        expect(codes == ["ok", "tool_result"], f"the calls ended with {codes}")
        await rig.value(session, f"servers.{NAME}.echo('goes on')")
        expect(gateway.fleet.upstream(NAME).pid == before, "the server was lost to all who use it")
    return f"a result of {_VERY_MANY:,} lists is refused unparsed; {watch.judge()}"


@tool_checks("D51", alone=True)
async def notifications_to_choke_on(rig: ToolRig) -> str:
    async with rig.session() as session:
        async with Watch() as watch:
            codes = [
                await _flooded(session, NAGGING, values, aside=True, name=name)
                for values, name in ((50_000, 0), (1, 20 * MB))
            ]
        expect(codes == ["tool_unavailable"] * 2, f"it was not given up: {codes}")
        await rig.value(session, f"servers.{NAME}.echo('the others')")
    return f"it is given up, others go on; {watch.judge()}"


@tool_checks("D52", alone=True)
async def results_that_nobody_reads(rig: ToolRig) -> str:
    async with rig.session() as session, Watch() as watch:
        results, held = local_of(session)._calls._results, 0
        task = asyncio.create_task(rig.run(session, "D52.py"))
        while not task.done():
            held = max(held, results.held)
            await asyncio.sleep(SAMPLE)
        result = await task
        expect(result.value == (9, []), f"they ended with {result.value} {result.error}")
        expect(0 < held <= results.most, f"{held:,} bytes of results are held")
        expect(results.held == 0, f"{results.held:,} bytes are never given back")
    return f"{held // MB} MB are held at most; {watch.judge()}"


@tool_checks("D53", alone=True)
async def long_definitions_at_once(rig: ToolRig) -> str:
    async with rig.session() as session, Watch() as watch:
        size = await rig.value(session, "len(str(search_tools('bomb', 'full', 100)))")
        expect(0 < size < _MOST_FOUND, f"{size:,} characters were found at once")
    return f"{size:,} characters; {watch.judge()}"


async def _flooded(
    session: Session, server: str, values: int, aside: bool = False, name: int = 0
) -> str:
    given = {"values": values, "aside": aside, "name": name}
    code = (
        f"try:\n    call_mcp_tool('{server}.flood', {given})\n"
        "except ToolError as error: print(error.code)\nelse: print('ok')"
    )
    return (await session.run(code, timeout=_PATIENCE)).text.strip()


@tool_checks("D08")
async def results_that_break_their_schema(rig: ToolRig) -> str:
    async with rig.session() as session:
        for name in ("lie", "silent"):
            code = (
                f"try:\n    servers.{NAME}.{name}()\nexcept ToolError as error: print(error.code)"
            )
            found = (await session.run(code)).text.strip()
            expect(found == "tool_result", f"{name}: {found}")
        result = await session.run(f"servers.{NAME}.shout()")
        size = len(result.text) + len(str(result.error))
        expect(result.status == "error", f"it ended with {result.status}")
        expect(size < MOST_ERROR, f"{size:,} characters of an error reached the caller")
        await rig.works(session)
    return f"errors with codes, {size:,} characters of four million"
