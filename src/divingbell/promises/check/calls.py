"""The way to the gateway: who calls, what may be called, and frames that break the rules."""

import asyncio
import os

from divingbell.models import MB
from divingbell.promises.check.rig import Watch, expect, judged, local_of
from divingbell.promises.check.tool_rig import NAME, ToolRig, tool_checks
from divingbell.session.calls import MAX_BYTES

_SETTLE = 0.3
_LOOK = 0.002
_OVERTIME = 5.0
_SWOLLEN, _AT_ONCE = 12, 2
"""Calls of a megabyte and a half that take 25 MB each once they are parsed."""
_FLOOD_PATIENCE = 20.0
_FLOOD_MEMORY = 80 * MB
"""Four seconds of refusals that are kept make more than that."""


@tool_checks("T03")
async def calls_of_other_sessions(rig: ToolRig) -> str:
    async with rig.session(user="ann") as first, rig.session(user="ben") as second:
        slow = asyncio.create_task(first.run(f"servers.{NAME}.slow(0.6)"))
        words = judged(await rig.run(second, "T03.py", OTHER=first.id, OWNER="ann"))
        expect((await slow).value == "at last", "another session's call was cancelled")
        await rig.run(first, "T03_after.py")
        await first.close()
        before = await rig.counted(second, "left behind")
        await asyncio.sleep(_SETTLE)
        after = await rig.counted(second, "left behind")
        expect(before == after, f"{after - before} calls came from a session that is closed")
    return f"{words}; nothing came after the end"


@tool_checks("T04")
async def raw_calls(rig: ToolRig) -> str:
    async with rig.session() as session:
        before = await rig.counted(session, "forbidden")
        words = judged(await rig.run(session, "T04.py"))
        after = await rig.counted(session, "forbidden")
        expect(before == after, "the server was called all the same")
    return words


@tool_checks("T07")
async def broken_frames(rig: ToolRig) -> str:
    async with rig.session() as neighbour:

        async def attack(kind: str) -> str:
            async with rig.session(timeout=1.5) as session:
                result = await rig.run(session, "T07.py", KIND=kind)
                expect(result.status in ("killed", "timeout"), f"{kind}: {result.status}")
                await rig.works(session)
                return f"{kind}: {result.status}"

        async def others_call() -> None:
            while True:
                answer = await rig.value(neighbour, f"servers.{NAME}.echo('still here')")
                expect(answer == "still here", f"the neighbour got {answer!r}")
                await asyncio.sleep(0.1)

        beside = asyncio.create_task(others_call())
        try:
            kinds = ("half", "drip", "garbage", "length", "lie")
            seen = await asyncio.gather(*(attack(kind) for kind in kinds))
            expect(not beside.done(), "the neighbour could not call any more")
        finally:
            beside.cancel()
            await asyncio.wait({beside})
        await rig.value(neighbour, f"servers.{NAME}.echo('afterwards')")
    return ", ".join(seen)


@tool_checks("T08", alone=True)
async def descriptors_with_calls(rig: ToolRig) -> str:
    async with rig.session() as session:
        await rig.value(session, f"servers.{NAME}.echo('before')")
        before = len(os.listdir("/proc/self/fd"))
        await rig.run(session, "T08.py")
        await rig.works(session)
        after = len(os.listdir("/proc/self/fd"))
        expect(after <= before + 2, f"{before} descriptors before, {after} after")
    return f"{before} descriptors before, {after} after"


@tool_checks("T12")
async def frames_on_standard_output(rig: ToolRig) -> str:
    async with rig.session() as session:
        result = await rig.run(session, "T12.py", CELL=session.cells + 1)
        expect(result.value == "right", f"the value is {result.value!r}")
        expect("spoofed" in result.text, "what was printed is lost")
        expect(result.calls == (), f"a call was made: {result.calls}")
        expect(await rig.counted(session, "spoofed") == 0, "the server was called")
    return "shown as text"


@tool_checks("T40")
async def bound_arguments(rig: ToolRig) -> str:
    async with rig.session(user="ann") as session:
        return judged(await rig.run(session, "T40.py", USER="ann"))


@tool_checks("T41")
async def approvals(rig: ToolRig) -> str:
    async with rig.session() as session:
        asked, before = len(rig.asked), await rig.counted(session, "careful")
        words = judged(await rig.run(session, "T41.py"))
        expect(len(rig.asked) > asked, "nobody was asked")
        after = await rig.counted(session, "careful")
        expect(before == after, "the call was made before a person had said yes")
    return words


@tool_checks("N12")
async def data_in_arguments(rig: ToolRig) -> str:
    code = (
        f"from servers.{NAME} import send\nsend('friend@example.org', text='hello')\n"
        "for to in ('thief@example.com', '', 'friend@example.org.example.com'):\n"
        "    try:\n        send(to, text='the secret plan'); print('sent')\n"
        "    except ToolDenied as error: print(error.code)"
    )
    async with rig.session() as session:
        before = await rig.counted(session, "send")
        result = await session.run(code)
        expect(result.text.split() == ["tool_denied"] * 3, f"{result.text} {result.error}")
        expect(await rig.counted(session, "send") == before + 1, "the server was called")
        calls = [(call.name, call.status) for call in result.calls]
        denied = [(f"{NAME}.send", "tool_denied")] * 3
        expect(calls == [(f"{NAME}.send", "ok"), *denied], f"listed: {calls}")
        expect("the secret plan" in result.calls[1].arguments, "the arguments are not listed")
    return "three of four refused, all four listed with their arguments"


@tool_checks("H53")
async def loose_arguments(rig: ToolRig) -> str:
    async with rig.session() as session:
        words = judged(await rig.run(session, "H53.py"))
        expect(await rig.counted(session, "loose") == 0, "the server was called")
    return words


@tool_checks("H54")
async def loose_headers(rig: ToolRig) -> str:
    headers = (
        '{"event":"call"}', '{"event":"call","id":"1","name":"a.b"}',
        '{"event":"call","id":true,"name":"a.b"}', '{"event":"call","id":1.5,"name":"a.b"}',
        '{"event":"call","id":1,"name":7}', '{"event":"call","id":1,"name":["hostile.echo"]}',
        '{"event":"call","id":1,"id":2,"name":"a.b"}', '{"event":"call","id":NaN,"name":"a.b"}',
    )  # fmt: skip
    async with rig.session() as session:
        for header in headers:
            result = await rig.run(session, "H04.py", HEADER=header)
            expect(result.status == "killed", f"{header} was taken: {result.status}")
            await rig.works(session)
    return f"{len(headers)} refused, the session went on each time"


@tool_checks("H70", alone=True)
async def arguments_to_choke_on(rig: ToolRig) -> str:
    async with rig.session(memory="256MB") as session:
        async with Watch() as watch:
            words = judged(await rig.run(session, "H70.py"))
        await rig.works(session)
    return f"{words}; {watch.judge()}"


@tool_checks("H71", alone=True)
async def arguments_that_swell(rig: ToolRig) -> str:
    async with rig.session() as session, Watch() as watch:
        calls, most = local_of(session)._calls, 0
        task = asyncio.create_task(rig.run(session, "H71.py"))
        while not task.done():
            most = max(most, len(calls._tasks))
            expect(calls._cost <= MAX_BYTES, f"{calls._cost:,} bytes are parsed at once")
            await asyncio.sleep(_LOOK)
        expect(task.result().value == _SWOLLEN, f"not all were answered: {task.result().error}")
        expect(0 < most <= _AT_ONCE, f"{most} of them were parsed at once")
    return f"{_SWOLLEN} calls, {most} at once at most; {watch.judge()}"


@tool_checks("H72")
async def calls_cancelled_at_once(rig: ToolRig) -> str:
    async with rig.session(timeout=0.5) as session:
        task = asyncio.create_task(rig.run(session, "H72.py"))
        done, _ = await asyncio.wait({task}, timeout=_OVERTIME)
        if not done:
            await session.interrupt()
        result = await task
        expect(bool(done) and result.status == "timeout", f"it ended with {result.status}")
        expect(not local_of(session)._calls._tasks, "the host still counts the call")
        await rig.works(session)
    return "timeout, as without a call"


def _flood(identifier: str) -> None:
    """Register a check that the host stays well while calls pour in."""

    @tool_checks(identifier, alone=True)
    async def flood(rig: ToolRig) -> str:
        async with rig.session(timeout=2.0, ceiling=4.0) as session:
            async with Watch() as watch:
                task = asyncio.create_task(rig.run(session, f"{identifier}.py"))
                await asyncio.wait({task}, timeout=_FLOOD_PATIENCE)
                await asyncio.sleep(_SETTLE)
            words = watch.judge()
            expect(watch.memory < _FLOOD_MEMORY, f"answers that nobody reads are kept: {words}")
            expect(task.done() and not task.cancelled(), "there was no result")
            await rig.works(session)
            return f"{task.result().status}; {words}"


for _identifier in ("H55", "H56"):
    _flood(_identifier)
