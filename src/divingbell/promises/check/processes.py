"""Processes, secrets of the host, and the way to it over the network."""

import asyncio
import os
import secrets
import socket
import tempfile
import time
from pathlib import Path

from divingbell.promises.check.rig import (
    CLOSE_ALLOWANCE,
    SAMPLE,
    CheckRig,
    PromiseBroken,
    checks,
    closed_in_time,
    expect,
    judged,
    local_of,
)
from divingbell.session.session import Session

NEIGHBOUR_ALLOWANCE = 10.0


@checks("P11", alone=True)
async def secrets_of_the_host(rig: CheckRig) -> str:
    secret, name = secrets.token_hex(24), "PROMISE_SECRET"
    os.environ[name] = secret
    try:
        with tempfile.NamedTemporaryFile("w", prefix=secret, suffix=".txt") as file:
            file.write(secret)
            file.flush()
            os.chmod(file.name, 0o644)
            await rig.kill_zygote()  # the next one is started by a host that has the secret
            async with rig.session(memory="512MB") as session:
                context = {"TURNED": secret[::-1], "SECRET_FILE": file.name[::-1]}
                result = await rig.run(session, "P11.py", **context)
    finally:
        del os.environ[name]
    expect("HITS=" in result.text, f"the probe gave no answer: {result.error}")
    expect("HITS=0\n" in result.text, "the secret is in the interpreter's memory")
    expect("FILE=False" in result.text, "the file beside the host is visible")
    expect(secret not in result.text and name not in result.text, "the secret is in /proc")
    return "a planted variable and a planted file are nowhere"


@checks("R55", alone=True)
async def death_of_the_zygote(rig: CheckRig) -> str:
    if rig.zygote is None:
        raise PromiseBroken("there is no zygote to kill: a backend without one can't promise this")
    async with rig.session() as session:
        await session.run("x = 7")
        await rig.kill_zygote()
        expect((await session.run("x")).value == 7, "a living session was harmed")
        async with rig.session(processes=40) as other:
            await rig.works(other)
    return "the living session kept its variables, a new one was opened"


@checks("R15")
async def daemons(rig: CheckRig) -> str:
    async with rig.session() as session:
        expect("daemonised" in (await rig.run(session, "R15.py")).text, "no daemon was started")
        running = processes_of(session)
        expect(len(running) >= 3, f"the daemon is not among {running}")
    deadline = time.monotonic() + CLOSE_ALLOWANCE
    while left := [pid for pid in running if Path(f"/proc/{pid}").exists()]:
        expect(time.monotonic() < deadline, f"{len(left)} processes are left")
        await asyncio.sleep(SAMPLE)
    return f"{len(running)} processes, none left"


def processes_of(session: Session) -> list[int]:
    """The pids that the processes of a session have on the host."""
    return local_of(session)._interpreter.sandbox.pids()


@checks("R09", alone=True)
async def burning_cores(rig: CheckRig) -> str:
    cores, seconds = 0.5, 1.5
    async with rig.session() as neighbour, rig.session(cores=cores) as session:
        task = asyncio.create_task(rig.run(session, "R09.py", SECONDS=seconds))
        slowest = 0.0
        while not task.done():
            started = time.monotonic()
            await rig.works(neighbour)
            slowest = max(slowest, time.monotonic() - started)
            await asyncio.sleep(0.1)
        usage = (await task).usage
    share = (usage.cpu_ms or 0.0) / usage.wall_ms
    words = f"{share:.2f} cores of {cores}; the neighbour answered in {slowest * 1000:.0f} ms"
    expect(0.0 < share < cores * 1.5 and slowest < NEIGHBOUR_ALLOWANCE, words)
    return words


@checks("R26")
async def hanging_at_the_end(rig: CheckRig) -> str:
    async with rig.session() as session:
        expect("waiting" in (await rig.run(session, "R26.py")).text, "nothing hangs")
        return await closed_in_time(session)


@checks("R53")
async def stopped_file_server(rig: CheckRig) -> str:
    limit, allowed = 1.5, 20.0
    async with rig.session(timeout=limit, output=1 << 16) as session:
        started = time.monotonic()
        # A task of its own: what is raised in it must not be able to cancel this one.
        task = asyncio.create_task(rig.run(session, "R53.py"))
        await asyncio.wait({task}, timeout=allowed)
        seconds = time.monotonic() - started
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSE_ALLOWANCE)
            raise PromiseBroken(
                f"no result {seconds:.0f} s after the start, the limit was {limit} s"
            )
        expect(not task.cancelled(), "the caller of run() was cancelled by user code")
        await rig.works(session)
        return f"{task.result().status} after {seconds:.1f} s"


# Network


@checks("N10")
async def reached_from_outside(rig: CheckRig) -> str:
    port = _free_port()
    async with rig.session() as session:
        words = judged(await rig.run(session, "N10.py", PORT=port))
        with socket.socket() as line:
            line.settimeout(1)
            expect(line.connect_ex(("127.0.0.1", port)) != 0, "the port answers on the host")
    return words


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port


@checks("N41")
async def sockets_of_the_host(rig: CheckRig) -> str:
    name = f"divingbell-check-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket() as port:
        abstract.bind(f"\0{name}")
        abstract.listen()
        port.bind(("127.0.0.1", 0))
        port.listen()
        async with rig.session() as session:
            context = {"NAME": name, "PORT": port.getsockname()[1]}
            return judged(await rig.run(session, "N41.py", **context))
