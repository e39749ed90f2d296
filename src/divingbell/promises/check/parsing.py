"""Values, texts and frames from inside, which the host parses."""

import asyncio
import os
import re
import time
from pathlib import Path

from divingbell.models import MB
from divingbell.promises.check.rig import SAMPLE, CheckRig, Watch, checks, expect, local_of
from divingbell.shares.host_time import SHARE

MOST_OUTPUTS = 20_000
"""A result with more parts than this is not counted by anyone."""
SETTLE = 0.5
READING_ALLOWANCE = 2.0
"""Seconds of processor time. Measured: a tenth of a second, and 5 s where the set is made."""
SLOWED_AFTER = 4.0
"""Seconds in which a session has used up all that it has in hand."""
MOST_SHARE = 2 * SHARE
_MIME = re.compile(r"[\w.+-]{1,100}/[\w.+;=-]{1,100}")


@checks("H01")
async def pickles(rig: CheckRig) -> str:
    async with rig.session() as session:
        result = await rig.run(session, "H01.py")
        expect(isinstance(result.value, str), f"the value is {type(result.value)}")
        expect(not Path("/tmp/PWNED-BY-PICKLE").exists(), "it was unpickled")
    return "the value is text"


@checks("H03")
async def deep_values(rig: CheckRig) -> str:
    async with rig.session() as session:
        for depth, closed in ((1_000_000, False), (400_000, True), (900, True), (200, True)):
            context = {"DEPTH": depth, "CLOSED": closed, "CELL": session.cells + 1}
            result = await rig.run(session, "H03.py", **context)
            found = _depth(result.value)
            expect(found <= 100, f"a value nested {found} deep reached the caller")
            await rig.works(session)
    return "refused at every depth over 100"


def _depth(value: object) -> int:
    depth = 0
    while isinstance(value, list) and value:
        value, depth = value[0], depth + 1
    return depth + isinstance(value, list)


@checks("H04")
async def loose_json(rig: CheckRig) -> str:
    headers = (
        '{"x":NaN}', '{"x":-Infinity}', '{"x":1e400}', '{"x":1' + "0" * 5000 + "}",
        '{"x":1,"x":2}', r'{"x":"\ud800"}', "[1]", "7", "null", '{"x":1}{"y":2}', "{'x':1}",
        '{"event":"stdout","n":"1"}', '{"event":"display"}', '{"event":"display","parts":[[1,2]]}',
    )  # fmt: skip
    async with rig.session() as session:
        for header in headers:
            result = await rig.run(session, "H04.py", HEADER=header)
            expect(result.status == "killed", f"{header[:40]} was taken: {result.status}")
            await rig.works(session)
    return f"{len(headers)} refused, the session went on each time"


@checks("H05-big", "H06")
async def long_texts(rig: CheckRig) -> str:
    words = []
    for probe in ("H05_big.py", "H06.py"):
        async with rig.session(memory="256MB") as session:
            result = await rig.run(session, probe)
            size = len(result.text) + len(str(result.error)) + len(str(result.value))
            expect(result.status in ("ok", "error"), f"{probe}: {result.status} {result.error}")
            expect(size < 2 * MB, f"{probe}: {size:,} characters reached the caller")
            words.append(f"{probe}: {size:,} characters")
            await rig.works(session)
    return "; ".join(words)


@checks("H08")
async def active_content(rig: CheckRig) -> str:
    async with rig.session() as session:
        result = await rig.run(session, "H08.py")
        kinds = {output.type for output in result.outputs}
        expect({"text/html", "image/svg+xml", "text/markdown"} <= kinds, f"shown: {kinds}")
        plain = result.to_dict()["output"]
        expect("<s" not in plain and "invalid" not in plain, "markup is part of the text")
    return f"typed data: {', '.join(sorted(kinds))}"


@checks("H42")
async def forged_answers(rig: CheckRig) -> str:
    async with rig.session() as session:
        await rig.run(session, "H42.py", CELL=session.cells + 1)
        await asyncio.sleep(SAMPLE)
        expect((await session.run("'right'")).value == "right", "the next cell's value is forged")
        variables = await session.variables()
        expect(all(isinstance(item.name, str) for item in variables), "forged variables")
        await rig.works(session)
    return "the next result was its own"


@checks("H73", alone=True)
async def keys_with_one_hash(rig: CheckRig) -> str:
    async with rig.session() as session:
        before = time.process_time()
        result = await rig.run(session, "H73.py", CELL=session.cells + 1)
        spent = time.process_time() - before
        expect(result.value_kind == "text", f"the value is {result.value_kind}")
        expect(spent < READING_ALLOWANCE, f"the host spent {spent:.1f} s of processor time on it")
        await rig.works(session)
    return f"text, after {spent:.2f} s of the host's processor time"


@checks("H44", alone=True)
async def descriptors_for_the_host(rig: CheckRig) -> str:
    async with rig.session() as session:
        before = len(os.listdir("/proc/self/fd"))
        await rig.run(session, "H44.py")
        await rig.works(session)
        after = len(os.listdir("/proc/self/fd"))
        expect(after <= before + 2, f"{before} descriptors before, {after} after")
    return f"{before} descriptors before, {after} after"


@checks("H47-kind")
async def strange_types(rig: CheckRig) -> str:
    async with rig.session() as session:
        result = await rig.run(session, "H47_kind.py")
        kinds = [output.type for output in result.outputs]
        strange = [kind[:60] for kind in kinds if not _MIME.fullmatch(kind)]
        expect(not strange, f"types that reached the caller: {strange}")
        await rig.works(session)
    return f"{result.status}, {len(kinds)} outputs with sound types"


def _flood(identifier: str, timeout: float) -> None:
    """Register a check that the host stays well while a probe floods it."""

    @checks(identifier, alone=True)
    async def flood(rig: CheckRig) -> str:
        async with rig.session(timeout=timeout) as session:
            async with Watch() as watch:
                # A task of its own, as in `stopped_file_server`.
                task = asyncio.create_task(rig.run(session, f"{identifier}.py"))
                await asyncio.wait({task}, timeout=20)
                await asyncio.sleep(SETTLE)
            words = watch.judge()
            expect(task.done() and not task.cancelled(), "there was no result")
            result = task.result()
            expect(len(result.outputs) < MOST_OUTPUTS, f"{len(result.outputs):,} outputs are kept")
            await rig.works(session)
            return f"{result.status}; {words}"


for _identifier in ("H43", "H47", "H48", "H50", "H52"):
    _flood(_identifier, 4.0)
for _identifier in ("H60", "H61", "H63", "H64"):
    _flood(_identifier, 1.5)


@checks("H62", alone=True)
async def flood_after_the_cell(rig: CheckRig) -> str:
    """A process that a cell has left behind floods the host: it is slowed down, and then ended."""
    async with rig.session() as session, Watch() as watch:
        result = await rig.run(session, "H62.py")
        # Its last word may come too late: what it has left behind is sent before it.
        expect(result.status in ("ok", "timeout"), f"the cell: {result.status} {result.error}")
        await asyncio.sleep(SLOWED_AFTER)
        before = time.thread_time()
        await asyncio.sleep(1.0)
        share = time.thread_time() - before
        expect(share < MOST_SHARE, f"the host spends {share:.0%} of its time on it")
        after = await session.run("1 + 1", timeout=10)
        expect(after.value == 2, f"the session does not work afterwards: {after.error}")
        ended = any("kept the host busy" in note for note in after.notes)
    words = "ended, and told" if ended else f"slowed down to {share:.0%} of a processor"
    return f"{words}; {watch.judge()}"


@checks("H49", alone=True)
async def empty_background_events(rig: CheckRig) -> str:
    async with rig.session() as session, Watch() as watch:
        await rig.run(session, "H49.py")
        await asyncio.sleep(1.0)
        kept = len(local_of(session)._background._kept)
        expect(kept < 2000, f"the host keeps {kept:,} events that carry nothing")
        await rig.works(session)
    return f"{kept} kept; {watch.judge()}"
