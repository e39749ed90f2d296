"""Commands: the same walls as for cells, floods, servers that were taken over, and their end."""

import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Iterator

from divingbell.command import CommandResult
from divingbell.promises import PROBES, PROMISES, Promise
from divingbell.promises.check.rig import (
    CLOSE_ALLOWANCE,
    SAMPLE,
    CheckRig,
    PromiseBroken,
    Watch,
    checks,
    expect,
    local_of,
)
from divingbell.session.session import Session

PROBES_OF_WALLS = ("F01", "F03", "K01", "K11", "K20", "K44", "K45", "N01", "N02", "P01")
"""One or two for each wall; the others meet the same ones."""
AT_ONCE = 4
FLOODING = 2.0
"""Seconds for which a command floods."""
_FLOODS = {
    "one byte at a time": "python3 -c 'import os\nwhile True: os.write(1, b\"x\")'",
    "text without end, on both": "yes >&2 & yes",
    "bytes that are no text": "yes | tr 'y\\n' '\\377\\377'",
}
_SENT = {
    "tiny frames": struct.pack("!II", 2, 0) + b"{}",
    "empty pieces": struct.pack("!II", 18, 0) + b'{"event":"stdout"}',
    "a length of 4 GB": struct.pack("!II", 2, 0xFFFFFFFF) + b"{}",
    "brackets": struct.pack("!II", 1000, 0) + b"[" * 500 + b"]" * 500,
    "an exit that is none": struct.pack("!II", 31, 0) + b'{"event":"ended","code":999999}',
}
_OF_A_CELL = """
import os, resource
{
    "identity": [os.getuid(), os.getgid(), os.getgroups()],
    "limits": {
        name: list(resource.getrlimit(getattr(resource, name)))
        for name in dir(resource) if name.startswith("RLIMIT_")
    },
}
"""
_MARK = "614.614"
_STUBBORN = f"trap '' TERM; sleep {_MARK} & (sleep {_MARK} &) ; kill -STOP $PPID; sleep {_MARK}"
_LEFT = f"""
import pathlib
len([1 for file in pathlib.Path("/proc").glob("[0-9]*/cmdline") if b"{_MARK}" in file.read_bytes()])
"""


def _judged(result: CommandResult) -> None:
    bad = [line for line in result.stdout.splitlines() if line.startswith("UNSAFE")]
    if bad or "SAFE" not in result.stdout or result.status != "ok":
        said = "; ".join(bad) or f"{result.status} {result.stderr[-200:]}"
        raise PromiseBroken(f"{result.number}: {said}")


@checks("C01")
async def walls(rig: CheckRig) -> str:
    async with rig.session() as session:
        backend = session.isolation.backend
        rows = [row for row in PROMISES if row.id in PROBES_OF_WALLS and row.kept_by(backend)]
        places = asyncio.Semaphore(AT_ONCE)

        async def attack(row: Promise) -> None:
            async with places:
                python = ["python3", "-"]
                env = {"PYTHONPATH": "/workspace"}
                _judged(await session.command(python, input=row.source(), env=env, timeout=30))

        await asyncio.gather(*map(attack, rows))
    return f"{len(rows)} attacks of the other groups, all refused"


@checks("C02")
async def identity_and_limits(rig: CheckRig) -> str:
    return await _looks(rig, "C02.py")


@checks("C06")
async def a_look_at_the_server(rig: CheckRig) -> str:
    return await _looks(rig, "C06.py")


async def _looks(rig: CheckRig, probe: str) -> str:
    """Run a probe as a command that knows what a cell has."""
    async with rig.session() as session:
        own = await session.run(_OF_A_CELL)
        await session.files.put(probe, PROBES / probe)
        result = await session.command(["python3", probe], env={"OF_A_CELL": str(own.value)})
        _judged(result)
    return f"{result.stdout.count('SAFE')} looks, nothing found"


@checks("C03", alone=True)
async def floods(rig: CheckRig) -> str:
    async with rig.session() as neighbour, Watch() as watch:
        for name, command in _FLOODS.items():
            async with rig.session() as session:
                task = asyncio.create_task(session.command(command, timeout=FLOODING))
                while not task.done():
                    await rig.works(neighbour)
                    await asyncio.sleep(SAMPLE)
                status = (await task).status
                expect(status in ("timeout", "limit"), f"{name}: {status}")
                await rig.works(session)
    return f"{len(_FLOODS)} floods; {watch.judge()}"


@checks("C04", alone=True)
async def servers_that_were_taken_over(rig: CheckRig) -> str:
    async with rig.session() as neighbour, Watch() as watch:
        for name, sent in _SENT.items():
            async with rig.session() as session, _taken_over(session, sent):
                result = await session.command("true", timeout=FLOODING)
                expect(result.status in ("killed", "timeout", "limit"), f"{name}: {result.status}")
                await rig.works(session)
                await rig.works(neighbour)
    return f"{len(_SENT)} of them; {watch.judge()}"


@contextlib.asynccontextmanager
async def _taken_over(session: Session, sent: bytes) -> AsyncIterator[None]:
    """Have the next command of a session be served by one that only ever sends these bytes."""
    ours, theirs = socket.socketpair()
    sandbox = local_of(session).sandbox
    sandbox.open_command = lambda number: theirs.detach()  # type: ignore[method-assign]
    with ours, _sending(ours, sent):
        yield


@contextlib.contextmanager
def _sending(line: socket.socket, sent: bytes) -> Iterator[None]:
    def send() -> None:
        with contextlib.suppress(OSError):  # the host has closed the line
            while True:
                line.sendall(sent * 100)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    yield
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
    thread.join()


@checks("C05")
async def commands_that_do_not_end(rig: CheckRig) -> str:
    async with rig.session() as session:
        task = asyncio.create_task(session.command(_STUBBORN, timeout=1.0))
        done, _ = await asyncio.wait({task}, timeout=CLOSE_ALLOWANCE)
        expect(bool(done), "the host waits for a server that was stopped")
        expect(task.result().status == "timeout", f"it ended with {task.result().status}")
        deadline = time.monotonic() + CLOSE_ALLOWANCE
        while (left := (await session.run(_LEFT)).value) != 0:
            expect(time.monotonic() < deadline, f"{left} of its processes are left")
            await asyncio.sleep(SAMPLE)
    return "ended with its server and all that it had started"
