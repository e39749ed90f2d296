"""Promises that can only be checked from outside: files, processes, what the host parses.

Each function has the id of its promise, gets a bench, and returns what it saw; it raises Broken
if the promise is not kept.
"""

import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import socket
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from divingbell.app import Divingbell
from divingbell.errors import FileRefused
from divingbell.models import MB, Result
from divingbell.promises import PREAMBLE, PROBES
from divingbell.session import Session

MEMORY_ALLOWANCE = 192 * MB
"""What this process may grow by while one session does its worst."""
BUSY_ALLOWANCE = 2.0
"""Seconds of processor time that the event loop may spend without a pause for other sessions.
Not of the clock: how busy the machine is otherwise must not matter."""
CLOSE_ALLOWANCE = 20.0
NEIGHBOUR_ALLOWANCE = 10.0
MOST_OUTPUTS = 20_000
"""A result with more parts than this is not counted by anyone."""
_SAMPLE = 0.02
_MIME = re.compile(r"[\w.+-]{1,100}/[\w.+;=-]{1,100}")
_SMALL: dict[str, Any] = {"memory": "128MB", "disk": "64MB", "timeout": 10.0}
_SETTLE = 0.5


class Broken(Exception):
    """The promise is not kept; the message says what was seen."""


def judged(result: Result) -> str:
    """The verdict that a probe has printed.

    Raises:
        Broken: it is UNSAFE, or there is none.
    """
    lines = result.text.splitlines()
    if bad := [line for line in lines if line.startswith("UNSAFE")]:
        raise Broken("; ".join(bad))
    good = [line.removeprefix("SAFE").strip() for line in lines if line.startswith("SAFE")]
    if not good or result.status != "ok":
        raise Broken(f"the probe gave no verdict: {result.status} {result.error}")
    return "; ".join(filter(None, good)) or "safe"


class Bench:
    """Opens sessions that have the preamble, and runs probes in them."""

    def __init__(self, bell: Divingbell) -> None:
        self.bell = bell

    @contextlib.asynccontextmanager
    async def session(self, **limits: Any) -> AsyncIterator[Session]:
        # Limits of its own: no session that was made before the check began is used.
        async with self.bell.session(**{**_SMALL, "open_files": 512, **limits}) as session:
            await session.files.put(PREAMBLE.name, PREAMBLE)
            yield session

    async def run(self, session: Session, probe: str, **context: Any) -> Result:
        source = (PROBES / probe).read_text("utf-8")
        return await session.run(source, context=context or None)

    async def works(self, session: Session) -> None:
        after = await session.run("1 + 1", timeout=10)
        if after.value != 2:
            raise Broken(f"the session does not work afterwards: {after.status} {after.error}")

    async def kill_zygote(self) -> None:
        """End the process that sessions are cloned from; the next session starts another.

        Where there is none, each session is started by the host itself.
        """
        backend = getattr(self.bell.backend, "chosen", self.bell.backend)
        zygote = getattr(backend, "zygote", None)
        if zygote is None:
            return
        if zygote.pid is None:
            raise Broken("the zygote does not run")
        os.kill(zygote.pid, signal.SIGKILL)


class Watch:
    """Measures this process: the growth of its memory and the lag of its event loop."""

    def __init__(self) -> None:
        self.memory = 0
        self.busy = 0.0

    async def __aenter__(self) -> "Watch":
        self._base = _resident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)  # it must have begun, or a block right now goes unseen
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(_SAMPLE)
        self._ended.set()
        self._task.cancel()
        await asyncio.wait({self._task})
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE):
            self.memory = max(self.memory, _resident() - self._base)

    async def _tick(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(_SAMPLE)
            self.busy = max(self.busy, time.thread_time() - before)

    def judge(self) -> str:
        words = f"memory +{self.memory // MB} MB, event loop busy for {self.busy:.2f} s at most"
        if self.memory > MEMORY_ALLOWANCE or self.busy > BUSY_ALLOWANCE:
            raise Broken(f"the host suffers: {words}")
        return words


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


Check = Callable[[Bench], Awaitable[str]]
CHECKS: dict[str, Check] = {}
ALONE: set[str] = set()
"""Those that measure this process or end its zygote: nothing may run beside them."""


def _checks(*identifiers: str, alone: bool = False) -> Callable[[Check], Check]:
    def register(function: Check) -> Check:
        for identifier in identifiers:
            CHECKS[identifier] = function
            if alone:
                ALONE.add(identifier)
        return function

    return register


def expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Broken(otherwise)


async def _refused(work: Awaitable[object], what: str) -> None:
    try:
        async with asyncio.timeout(CLOSE_ALLOWANCE):
            answer = await work
    except FileRefused:
        return
    except TimeoutError:
        raise Broken(f"{what}: the host was made to wait") from None
    raise Broken(f"{what} was granted: {str(answer)[:100]}")


async def _names(session: Session) -> set[str]:
    return {item.path for item in await session.files.list()} - {PREAMBLE.name}


# Files


@_checks("F04")
async def planted_start_up_files(bench: Bench) -> str:
    async with bench.session() as session:
        await bench.run(session, "F04.py")
    async with bench.session() as session:
        return judged(await bench.run(session, "F04_after.py"))


@_checks("F06")
async def links_as_artefacts(bench: Bench) -> str:
    async with bench.session() as session:
        expect((await bench.run(session, "F06.py")).status == "ok", "the links were not made")
        for name in ("link.csv", "environment.txt", "sub/root/etc/passwd", "folder/passwd"):
            await _refused(session.files.get(name), f"get {name}")
        expect(not await _names(session), f"links are listed: {await _names(session)}")
        await _refused(session.files.list("folder"), "list of a linked folder")
    return "four links refused, none listed"


@_checks("F42")
async def storing_through_links(bench: Bench) -> str:
    async with bench.session() as session:
        await bench.run(session, "F06.py")
        for name in ("folder/planted", "sub/root/tmp/planted", "folder/new/planted"):
            await _refused(session.files.put(name, b"x"), f"put {name}")
        await session.files.put("link.csv", b"own")
        expect(await session.files.get("link.csv") == b"own", "the link was written through")
        passwd = await session.run("open('/etc/passwd').read()")
        expect("root:" in str(passwd.value), "/etc/passwd was changed")
    return "refused; a link in the file's own place is replaced, not followed"


@_checks("F07")
async def links_that_change(bench: Bench) -> str:
    async with bench.session() as session:
        race = asyncio.create_task(bench.run(session, "F07.py", SECONDS=1.5))
        tries = granted = 0
        while not race.done():
            tries += 1
            with contextlib.suppress(FileRefused):
                content = await session.files.get("d/passwd")
                granted += 1
                expect(content in (b"inside", b""), f"bytes from outside: {content[:60]!r}")
            with contextlib.suppress(FileRefused):
                names = {item.path for item in await session.files.list()}
                expect(not any("shadow" in name or "hosts" in name for name in names), str(names))
        expect((await race).status == "ok", "the race did not run")
        expect(tries > 2, "the race was over before the host had tried")
    return f"{tries} tries, {granted} granted, not a byte from outside"


@_checks("F09")
async def special_files(bench: Bench) -> str:
    async with bench.session() as session:
        expect((await bench.run(session, "F09.py")).status == "ok", "they were not made")
        for name in ("pipe.json", "socket.json", "folder.json"):
            await _refused(session.files.get(name), f"get {name}")
        expect(await _names(session) == {"real.json"}, f"listed: {await _names(session)}")
    return "refused at once"


@_checks("F11")
async def sparse_file(bench: Bench) -> str:
    async with bench.session() as session:
        power = int((await bench.run(session, "F11.py")).text)
        async with Watch() as watch:
            await _refused(session.files.get("big", most=(1 << power) - 1), "get of a sparse file")
        return f"2**{power} bytes refused; {watch.judge()}"


@_checks("F14")
async def deep_folders(bench: Bench) -> str:
    async with bench.session() as session:
        result = await bench.run(session, "F14.py")
        expect("built" in result.text, f"not built: {result.error}")
        await session.files.list()
        await bench.works(session)
        return f"3,000 levels; {await _closed_in_time(session)}"


@_checks("F15")
async def locked_folders(bench: Bench) -> str:
    async with bench.session() as session:
        expect("locked" in (await bench.run(session, "F15.py")).text, "not locked")
        await session.files.list()
        words = await _closed_in_time(session)
    async with bench.session() as session:
        expect(not await _names(session), "files of the session before")
    return words


@_checks("F19")
async def neighbours(bench: Bench) -> str:
    async with bench.session() as first, bench.session() as second:
        expect("hidden" in (await bench.run(first, "F19.py")).text, "the first made nothing")
        return judged(await bench.run(second, "F19_neighbour.py"))


@_checks("F43")
async def names_that_lead_out(bench: Bench) -> str:
    names = ("../etc/passwd", "a/../../etc/passwd", "/etc/passwd", "a\0b", "x/" * 2500, "\ud800")
    async with bench.session() as session:
        for name in names:
            await _refused(session.files.get(name), f"get {name[:30]!r}")
            await _refused(session.files.put(name, b""), f"put {name[:30]!r}")
            await _refused(session.files.remove(name), f"remove {name[:30]!r}")
            await _refused(session.files.list(name), f"list {name[:30]!r}")
    return f"{len(names)} names refused"


async def _closed_in_time(session: Session) -> str:
    started = time.monotonic()
    await session.close()
    seconds = time.monotonic() - started
    expect(seconds < CLOSE_ALLOWANCE, f"closing took {seconds:.1f} s")
    return f"closed in {seconds:.2f} s"


# Processes and secrets


@_checks("P11", alone=True)
async def secrets_of_the_host(bench: Bench) -> str:
    secret, name = secrets.token_hex(24), "PROMISE_SECRET"
    os.environ[name] = secret
    try:
        with tempfile.NamedTemporaryFile("w", prefix=secret, suffix=".txt") as file:
            file.write(secret)
            file.flush()
            os.chmod(file.name, 0o644)
            await bench.kill_zygote()  # the next one is started by a host that has the secret
            async with bench.session(memory="512MB") as session:
                context = {"TURNED": secret[::-1], "SECRET_FILE": file.name[::-1]}
                result = await bench.run(session, "P11.py", **context)
    finally:
        del os.environ[name]
    expect("HITS=" in result.text, f"the probe gave no answer: {result.error}")
    expect("HITS=0\n" in result.text, "the secret is in the interpreter's memory")
    expect("FILE=False" in result.text, "the file beside the host is visible")
    expect(secret not in result.text and name not in result.text, "the secret is in /proc")
    return "a planted variable and a planted file are nowhere"


@_checks("R55", alone=True)
async def death_of_the_zygote(bench: Bench) -> str:
    async with bench.session() as session:
        await session.run("x = 7")
        await bench.kill_zygote()
        expect((await session.run("x")).value == 7, "a living session was harmed")
        async with bench.session(processes=40) as other:
            await bench.works(other)
    return "the living session kept its variables, a new one was opened"


@_checks("R15")
async def daemons(bench: Bench) -> str:
    async with bench.session() as session:
        expect("daemonised" in (await bench.run(session, "R15.py")).text, "no daemon was started")
        sandbox = session._interpreter.sandbox
        pids = getattr(sandbox, "pids", None)
        running = pids() if pids else _descendants(getattr(sandbox, "pid", 0))
        expect(len(running) >= 3, f"the daemon is not among {running}")
    deadline = time.monotonic() + CLOSE_ALLOWANCE
    while left := [pid for pid in running if Path(f"/proc/{pid}").exists()]:
        expect(time.monotonic() < deadline, f"{len(left)} processes are left")
        await asyncio.sleep(_SAMPLE)
    return f"{len(running)} processes, none left"


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{each}/task").iterdir():
                found += [int(child) for child in (thread / "children").read_text().split()]
    return found


@_checks("R09", alone=True)
async def burning_cores(bench: Bench) -> str:
    cores, seconds = 0.5, 1.5
    async with bench.session() as neighbour, bench.session(cores=cores) as session:
        task = asyncio.create_task(bench.run(session, "R09.py", SECONDS=seconds))
        slowest = 0.0
        while not task.done():
            started = time.monotonic()
            await bench.works(neighbour)
            slowest = max(slowest, time.monotonic() - started)
            await asyncio.sleep(0.1)
        usage = (await task).usage
    share = (usage.cpu_ms or 0.0) / usage.wall_ms
    words = f"{share:.2f} cores of {cores}; the neighbour answered in {slowest * 1000:.0f} ms"
    expect(0.0 < share < cores * 1.5 and slowest < NEIGHBOUR_ALLOWANCE, words)
    return words


@_checks("R26")
async def hanging_at_the_end(bench: Bench) -> str:
    async with bench.session() as session:
        expect("waiting" in (await bench.run(session, "R26.py")).text, "nothing hangs")
        return await _closed_in_time(session)


@_checks("R53")
async def stopped_file_server(bench: Bench) -> str:
    limit, allowed = 1.5, 20.0
    async with bench.session(timeout=limit, output=1 << 16) as session:
        started = time.monotonic()
        # A task of its own: what is raised in it must not be able to cancel this one.
        task = asyncio.create_task(bench.run(session, "R53.py"))
        await asyncio.wait({task}, timeout=allowed)
        seconds = time.monotonic() - started
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSE_ALLOWANCE)
            raise Broken(f"no result {seconds:.0f} s after the start, the limit was {limit} s")
        expect(not task.cancelled(), "the caller of run() was cancelled by user code")
        await bench.works(session)
        return f"{task.result().status} after {seconds:.1f} s"


# Network


@_checks("N10")
async def reached_from_outside(bench: Bench) -> str:
    port = _free_port()
    async with bench.session() as session:
        words = judged(await bench.run(session, "N10.py", PORT=port))
        with socket.socket() as line:
            line.settimeout(1)
            expect(line.connect_ex(("127.0.0.1", port)) != 0, "the port answers on the host")
    return words


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port


@_checks("N41")
async def sockets_of_the_host(bench: Bench) -> str:
    name = f"divingbell-check-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as abstract, socket.socket() as port:
        abstract.bind(f"\0{name}")
        abstract.listen()
        port.bind(("127.0.0.1", 0))
        port.listen()
        async with bench.session() as session:
            context = {"NAME": name, "PORT": port.getsockname()[1]}
            return judged(await bench.run(session, "N41.py", **context))


# What the host parses


@_checks("H01")
async def pickles(bench: Bench) -> str:
    async with bench.session() as session:
        result = await bench.run(session, "H01.py")
        expect(isinstance(result.value, str), f"the value is {type(result.value)}")
        expect(not Path("/tmp/PWNED-BY-PICKLE").exists(), "it was unpickled")
    return "the value is text"


@_checks("H03")
async def deep_values(bench: Bench) -> str:
    async with bench.session() as session:
        for depth, closed in ((1_000_000, False), (400_000, True), (900, True), (200, True)):
            context = {"DEPTH": depth, "CLOSED": closed, "CELL": session.cells + 1}
            result = await bench.run(session, "H03.py", **context)
            found = _depth(result.value)
            expect(found <= 100, f"a value nested {found} deep reached the caller")
            await bench.works(session)
    return "refused at every depth over 100"


def _depth(value: object) -> int:
    depth = 0
    while isinstance(value, list) and value:
        value, depth = value[0], depth + 1
    return depth + isinstance(value, list)


@_checks("H04")
async def loose_json(bench: Bench) -> str:
    headers = (
        '{"x":NaN}', '{"x":-Infinity}', '{"x":1e400}', '{"x":1' + "0" * 5000 + "}",
        '{"x":1,"x":2}', r'{"x":"\ud800"}', "[1]", "7", "null", '{"x":1}{"y":2}', "{'x':1}",
        '{"event":"stdout","n":"1"}', '{"event":"display"}', '{"event":"display","parts":[[1,2]]}',
    )  # fmt: skip
    async with bench.session() as session:
        for header in headers:
            result = await bench.run(session, "H04.py", HEADER=header)
            expect(result.status == "killed", f"{header[:40]} was taken: {result.status}")
            await bench.works(session)
    return f"{len(headers)} refused, the session went on each time"


@_checks("H05-big", "H06")
async def long_texts(bench: Bench) -> str:
    words = []
    for probe in ("H05_big.py", "H06.py"):
        async with bench.session(memory="256MB") as session:
            result = await bench.run(session, probe)
            size = len(result.text) + len(str(result.error)) + len(str(result.value))
            expect(result.status in ("ok", "error"), f"{probe}: {result.status} {result.error}")
            expect(size < 2 * MB, f"{probe}: {size:,} characters reached the caller")
            words.append(f"{probe}: {size:,} characters")
            await bench.works(session)
    return "; ".join(words)


@_checks("H08")
async def active_content(bench: Bench) -> str:
    async with bench.session() as session:
        result = await bench.run(session, "H08.py")
        kinds = {output.type for output in result.outputs}
        expect({"text/html", "image/svg+xml", "text/markdown"} <= kinds, f"shown: {kinds}")
        plain = result.to_dict()["output"]
        expect("<s" not in plain and "invalid" not in plain, "markup is part of the text")
    return f"typed data: {', '.join(sorted(kinds))}"


@_checks("H42")
async def forged_answers(bench: Bench) -> str:
    async with bench.session() as session:
        await bench.run(session, "H42.py", CELL=session.cells + 1)
        await asyncio.sleep(_SAMPLE)
        expect((await session.run("'right'")).value == "right", "the next cell's value is forged")
        variables = await session.variables()
        expect(all(isinstance(item.name, str) for item in variables), "forged variables")
        await bench.works(session)
    return "the next result was its own"


@_checks("H44", alone=True)
async def descriptors_for_the_host(bench: Bench) -> str:
    async with bench.session() as session:
        before = len(os.listdir("/proc/self/fd"))
        await bench.run(session, "H44.py")
        await bench.works(session)
        after = len(os.listdir("/proc/self/fd"))
        expect(after <= before + 2, f"{before} descriptors before, {after} after")
    return f"{before} descriptors before, {after} after"


@_checks("H47-kind")
async def strange_types(bench: Bench) -> str:
    async with bench.session() as session:
        result = await bench.run(session, "H47_kind.py")
        kinds = [output.type for output in result.outputs]
        strange = [kind[:60] for kind in kinds if not _MIME.fullmatch(kind)]
        expect(not strange, f"types that reached the caller: {strange}")
        await bench.works(session)
    return f"{result.status}, {len(kinds)} outputs with sound types"


def _flood(identifier: str) -> None:
    """Register a check that the host stays well while a probe floods it."""

    @_checks(identifier, alone=True)
    async def flood(bench: Bench) -> str:
        async with bench.session(timeout=4.0) as session:
            async with Watch() as watch:
                # A task of its own, as in `stopped_file_server`.
                task = asyncio.create_task(bench.run(session, f"{identifier}.py"))
                await asyncio.wait({task}, timeout=20)
                await asyncio.sleep(_SETTLE)
            words = watch.judge()
            expect(task.done() and not task.cancelled(), "there was no result")
            result = task.result()
            expect(len(result.outputs) < MOST_OUTPUTS, f"{len(result.outputs):,} outputs are kept")
            await bench.works(session)
            return f"{result.status}; {words}"


for _identifier in ("H43", "H47", "H48", "H50", "H52"):
    _flood(_identifier)


@_checks("H49", alone=True)
async def empty_background_events(bench: Bench) -> str:
    async with bench.session() as session, Watch() as watch:
        await bench.run(session, "H49.py")
        await asyncio.sleep(1.0)
        kept = len(session._background)
        expect(kept < 2000, f"the host keeps {kept:,} events that carry nothing")
        await bench.works(session)
    return f"{kept} kept; {watch.judge()}"


# Sessions


@_checks("S05")
async def guessed_sessions(bench: Bench) -> str:
    bell = bench.bell
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


@_checks("S06")
async def late_threads(bench: Bench) -> str:
    async with bench.session() as session:
        first = await bench.run(session, "S06.py")
        second = await session.run("import time; time.sleep(0.8)")
        late = [output for output in second.outputs if "LATE" in str(output.data)]
        expect(len(late) == 1, f"the thread's output is lost: {second.text!r}")
        expect(late[0].cell == first.cell, f"it is said to be of cell {late[0].cell}")
    return f"shown as output of cell {first.cell}"


@_checks("S07")
async def left_in_the_home(bench: Bench) -> str:
    async with bench.session() as session:
        expect("planted" in (await bench.run(session, "S07.py")).text, "nothing was planted")
    async with bench.session() as session:
        return judged(await bench.run(session, "S07_after.py"))


@_checks("S40")
async def random_numbers(bench: Bench) -> str:
    found: list[dict[str, Any]] = []
    for _ in range(2):
        async with bench.session() as session:
            found.append(json.loads((await bench.run(session, "S40.py")).text))
    same = [name for name in found[0] if found[0][name] == found[1][name]]
    expect(not same, f"the same in two sessions: {same}")
    return f"{', '.join(found[0])} differ"
