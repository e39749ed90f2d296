"""Flows: what one tool has returned does not get to another, by whatever way."""

from divingbell.principal import Principal
from divingbell.promises.check.rig import expect, judged
from divingbell.promises.check.tool_rig import NAME, ToolRig, tool_checks
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.passthrough.passthrough import Passthrough

_PATIENCE = 20.0
_KILLED = f"import os\nservers.{NAME}.dossier('T67 killed')\nos.kill(os.getpid(), 9)"
_CANCELLED = f"""
import asyncio
from servers.{NAME} import counted, dossier

call = asyncio.ensure_future(dossier("T67 cancelled", seconds=20))
while str(await counted("T67 cancelled")) == "0":
    await asyncio.sleep(0.5)
call.cancel()
"""
_SHARED = "T68"
_GIVEN = {"name": "T68 published", "text": "what I know"}


@tool_checks("T67")
async def data_of_another_server(rig: ToolRig) -> str:
    async with rig.session() as session:
        judged(await rig.run(session, "T67.py", HOW="returned"))
    async with rig.session() as session:
        judged(await rig.run(session, "T67.py", HOW="under way"))
        await session.reset()
        judged(await rig.run(session, "T67.py", HOW="reset"))
    for code, status in ((_KILLED, "killed"), (_CANCELLED, "ok")):
        async with rig.session() as session:
            result = await session.run(code)
            expect(result.status == status, f"{result.status}: {result.error}")
            judged(await rig.run(session, "T67.py", HOW="afterwards"))
    async with rig.session() as session:
        expect(not await rig.counted(session, "T67 published"), "the server was called")
    return "refused while the call is under way, and after a result, a reset, a kill, a cancel"


@tool_checks("T68")
async def data_around_a_session(rig: ToolRig) -> str:
    reader, guest, stranger = (
        ClientChannel(Principal("insider", f"T68 {number}", "http")) for number in range(3)
    )
    passing = Passthrough(rig.bell.gateway, {NAME: ("*",)}, _PATIENCE)
    try:
        await passing.call(passing.tools("insider")["dossier"], {"name": "T68"}, reader)
        for channel in (reader, guest):
            session, _ = await rig.bell.owned.open(channel.principal, _SHARED)
            result = await session.run(f"call_mcp_tool('{NAME}.publish', {_GIVEN})")
            expect("data of hostile.dossier" in str(result.error), f"by code: {result.value}")
            expect(not await _publishes(passing, channel), "a direct call was made")
        expect(await _publishes(passing, stranger), "another conversation is held back")
    finally:
        await rig.bell.owned.close(reader.principal, _SHARED)
        for channel in (reader, guest, stranger):
            await passing.contexts.leave(channel.principal.conversation)
            rig.bell.gateway.labels.leave(channel.principal.conversation)
    async with rig.session() as session:
        made = await rig.counted(session, "T68 published")
        expect(made == 1, f"the server was called {made} times")
    return "held back by code and directly, also whoever shares the session; nobody else"


async def _publishes(passing: Passthrough, channel: ClientChannel) -> bool:
    tool = passing.tools("insider")["publish"]
    return not (await passing.call(tool, _GIVEN, channel)).is_error
