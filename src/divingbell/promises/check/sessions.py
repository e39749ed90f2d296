"""Sessions: whose they are, and what is left of them."""

import json
import re
import secrets
from typing import Any

from divingbell.promises.check.rig import CheckRig, checks, expect, judged


@checks("S05")
async def guessed_sessions(rig: CheckRig) -> str:
    bell = rig.bell
    async with bell.session() as one, bell.session() as two:
        for session in (one, two):
            digits = re.findall(r"[0-9a-f]+$", session.id)
            expect(len(digits[0]) >= 32, f"{session.id} has {4 * len(digits[0])} random bits")
    name = secrets.token_hex(16)
    async with bell.session(name, user="one") as own, bell.session(name, user="two") as other:
        await own.run("x = 1")
        expect(own is not other, "another user was given the session")
        expect((await other.run("x")).status == "error", "another user sees the variables")
        async with bell.session(name) as nobodys:
            expect(nobodys is not own, "a caller without user was given the session")
    return "128 bits, bound to the user"


@checks("S06")
async def late_threads(rig: CheckRig) -> str:
    async with rig.session() as session:
        first = await rig.run(session, "S06.py")
        second = await session.run("import time; time.sleep(0.8)")
        late = [output for output in second.outputs if "LATE" in str(output.data)]
        expect(len(late) == 1, f"the thread's output is lost: {second.text!r}")
        expect(late[0].cell == first.cell, f"it is said to be of cell {late[0].cell}")
    return f"shown as output of cell {first.cell}"


@checks("S07")
async def left_in_the_home(rig: CheckRig) -> str:
    async with rig.session() as session:
        expect("planted" in (await rig.run(session, "S07.py")).text, "nothing was planted")
    async with rig.session() as session:
        return judged(await rig.run(session, "S07_after.py"))


@checks("S40")
async def random_numbers(rig: CheckRig) -> str:
    found: list[dict[str, Any]] = []
    for _ in range(2):
        async with rig.session() as session:
            found.append(json.loads((await rig.run(session, "S40.py")).text))
    same = [name for name in found[0] if found[0][name] == found[1][name]]
    expect(not same, f"the same in two sessions: {same}")
    return f"{', '.join(found[0])} differ"
