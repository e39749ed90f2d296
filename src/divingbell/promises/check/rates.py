"""Rates of users: what they run, and the CPU time that it takes, whichever way it is run."""

import asyncio
import contextlib
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from divingbell.app import Divingbell
from divingbell.errors import InvalidInput, RateExceeded
from divingbell.host import places
from divingbell.host.login import login_name
from divingbell.promises.check.rig import CheckRig, PromiseBroken, checks, expect
from divingbell.session.session import Session
from divingbell.settings.policy import Policy

GREEDY, OTHER = "greedy", "other"
SPIN = "import time\nend = time.process_time() + 1.5\nwhile time.process_time() < end: pass\n"
PATIENCE = 60.0
"""Seconds in which two seconds of CPU time are used, also on a busy machine."""
Way = Callable[[Session], Awaitable[Any]]


@contextlib.asynccontextmanager
async def _limited(rig: CheckRig, **rates: str) -> AsyncIterator[Divingbell]:
    """A Divingbell behind the same walls, whose users have rates."""
    settings = replace(
        rig.bell.settings,
        policy=Policy(**rates),  # type: ignore[arg-type]
        servers=(),
        mcp_config="",
        pool=0,
        privacy="off",
        audit="off",
    )
    async with Divingbell.of(settings) as bell:
        yield bell


async def _refused(work: Awaitable[Any], what: str) -> RateExceeded:
    try:
        await work
    except RateExceeded as error:
        return error
    raise PromiseBroken(f"{what} was run")


async def _drained(session: Session) -> None:
    async for _ in session.stream("1"):
        pass


WAYS: dict[str, Way] = {
    "a cell": lambda session: session.run("1"),
    "a streamed cell": _drained,
    "a command": lambda session: session.command("true"),
    "a command in the background": lambda session: session.command("true", background=True),
}


@checks("R70")
async def executions(rig: CheckRig) -> str:
    async with _limited(rig, execution_rate_per_user=f"{len(WAYS)}/hour") as bell:
        async with bell.session("one", user=GREEDY) as session:
            for way in WAYS.values():
                await way(session)
            for name, way in WAYS.items():
                await _refused(way(session), name)
        for identifier in ("one", "another"):
            async with bell.session(identifier, user=GREEDY) as session:
                error = await _refused(session.run("1"), "a cell of a new session")
                expect(session.cells == 0, "a cell was counted that is said to be refused")
        expect(0 < error.retry_after <= 3600, f"there is room in {error.retry_after} s")
        expect(" again in " in str(error), f"it does not say when: {error}")
        result = await bell.execute("1", user=OTHER)
        expect(result.value == 1, f"another user was refused: {result}")
    return f"refused {len(WAYS) + 2} times, and another user is not"


SPINNING: dict[str, Way] = {
    "a cell": lambda session: session.run(SPIN),
    "a child of a cell": lambda session: session.run(
        "import subprocess, sys\nsubprocess.run([sys.executable, '-c', code])",
        context={"code": SPIN},
    ),
    "a command": lambda session: session.command(["python3", "-c", SPIN]),
}


@checks("R71")
async def processor_time(rig: CheckRig) -> str:
    async with _limited(rig, cpu_rate_per_user="1/hour") as bell:
        for number, (name, way) in enumerate(SPINNING.items()):
            user = f"{GREEDY} {number}"
            async with bell.session(user=user) as session:
                await way(session)
            async with bell.session(user=user) as session:
                await _refused(session.run("1"), f"a cell after the CPU time of {name}")
        async with bell.session(user=GREEDY) as session:
            spinning = await session.command("while :; do :; done", background=True)
            try:
                async with asyncio.timeout(PATIENCE):
                    ended = await spinning.wait()
            except TimeoutError:
                raise PromiseBroken("a command in the background spins on") from None
            expect(ended.limit == "cpu", f"a command in the background ended with {ended}")
            await _refused(session.run("1"), "a cell after a command in the background")
        result = await bell.execute("1", user=OTHER)
        expect(result.value == 1, f"another user was refused: {result}")
    return "all is counted; what has no limit of its own was ended"


@checks("S41")
async def names_of_users(rig: CheckRig) -> str:
    bell, mark = rig.bell, secrets.token_hex(8)
    for wrong in (f"{mark}\0", f"{mark}\n", "\ud800" + mark, mark * 1000, 1, True, b"x", ""):
        try:
            await bell.execute("1", user=wrong)  # type: ignore[arg-type]
        except InvalidInput:
            continue
        raise PromiseBroken(f"a user can be called {wrong!r:.80}")
    names = [f"../../{mark}", mark, f"{mark}/", f"{mark} ", mark.upper(), f"~/{mark}", login_name()]
    async with contextlib.AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(bell.session(mark, user=u)) for u in names]
        sessions.append(await stack.enter_async_context(bell.session(mark)))
        keys = {session.key for session in sessions}
        expect(len(keys) == len(sessions), f"of {len(sessions)} users {len(keys)} are told apart")
        await sessions[0].run("1")
        made = [path for path in _folders() if mark in path.lower()]
        expect(not made, f"the name of a user became a path: {made}")
    return f"{len(names)} names and nobody's are told apart, and none is a path"


def _folders() -> list[str]:
    """All paths below the folder that we keep things in, and those beside and above it."""
    kept = places.data_folder()
    around = [Path(tempfile.gettempdir()), Path.cwd(), *list(kept.parents)[:2]]
    beside = [each for folder in around if folder.is_dir() for each in folder.iterdir()]
    return [str(each) for each in (*kept.rglob("*"), *beside)]
