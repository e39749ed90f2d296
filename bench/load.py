"""Many users of one service at once, for minutes: `./dev bench load [--quick] [--faults]`.

Fifty people, each with a token and a session, run short cells, pandas, plots and tools and move
files, with pauses of one to three seconds; beside it the same people ask only for /healthz, so
that the noise of the machine can be told apart. With --faults things go wrong meanwhile: the
zygote and a server of tools are killed, memory is used up, clients vanish, and the service is told
to end in the middle. Each run has a name of its own, by which what its client saw is compared with
the audit log: every run that began has one end there, none that was answered is missing, and
nobody is left without an answer. Beside both stands the longest piece of work of the service's
event loop.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apart
import environments
import httpx2
import lists
import processes
import table
from turns import Unable

from divingbell.audit.reading import records
from divingbell.settings.service import ServiceSettings

WATCHED = str(Path(__file__).with_name("pieces.py"))
COMMAND = str(Path(sys.executable).with_name("divingbell"))
TOOLS = str(Path(__file__).with_name("tool_server.py"))
USERS = Path(__file__).with_name("load_users.py")
LOCK = environments.ROOT / "requirements" / "load.txt"
PATIENCE = 60.0
TARGETS = {"short cell": (0.050, 0.150), "pandas": (0.250, None)}
"""Seconds: the 95th and the 99th percentile that are wanted."""
SPINNERS, MOST_BESIDE = 30, 0.050
LONGEST_PIECE = 0.020
"""Seconds of processor time."""
QUEUED = 12
"""Runs of one user that are there when the service is told to end: more than run at once."""
QUEUED_CODE = "import time; time.sleep(5)"
NAME = re.compile(r"# run ([\w-]+)")
ANSWERED = frozenset({"ok", "error", "timeout", "limit", "killed", "cancelled"})
"""What runs end with. Others were `refused`, came when the door was `shut`, or were left
`unanswered`."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs, and who may use it."""

    url: str
    tokens: list[str]
    process: subprocess.Popen[bytes]
    log: Path
    pieces: Path
    """Where it writes the longest piece of its loop, at its end."""
    runs: Path
    """What clients say became of each run, line by line."""


@contextlib.asynccontextmanager
async def served(
    users: int, *, watched: bool = False, of_user: int | None = None, **limits: str
) -> AsyncIterator[Service]:
    """A service with so many users and one server of tools, in a process of its own. Of each user
    as many cells run at once as is usual, or `of_user`."""
    with tempfile.TemporaryDirectory(prefix="divingbell-load-") as folder:
        tokens = [secrets.token_urlsafe(24) for _ in range(users)]
        file, config = Path(folder, "tokens"), Path(folder, "divingbell.toml")
        file.touch(0o600)
        file.write_text("".join(f"user{n} {token}\n" for n, token in enumerate(tokens)))
        log = Path(folder, "audit")
        given = "".join(f'{name} = "{value}"\n' for name, value in limits.items())
        config.write_text(
            f'[limits]\n{given}[servers.bench]\ncommand = "{sys.executable}"\nargs = ["{TOOLS}"]\n'
            f'[audit_log]\nfolder = "{log}"\nheads = "{folder}/heads"\n'
            + ("" if of_user is None else f"[service]\ncells_of_user = {of_user}\n")
        )
        port = lists.free_port()
        pieces = Path(folder, "pieces.json")
        command = [sys.executable, WATCHED, str(pieces)] if watched else [COMMAND]
        words = [*command, "serve", "--http", "--config", str(config)]
        words += ["--port", str(port), "--token-file", str(file)]
        with _running(words) as process:
            await _ready(f"http://127.0.0.1:{port}")
            if watched:
                process.send_signal(signal.SIGUSR2)
            runs = Path(folder, "runs")
            yield Service(f"http://127.0.0.1:{port}", tokens, process, log, pieces, runs)


@contextlib.contextmanager
def _running(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs as long as the block does, and is then told to end."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _ready(url: str) -> None:
    async with asyncio.timeout(PATIENCE), httpx2.AsyncClient(base_url=url) as client:
        while True:
            with contextlib.suppress(httpx2.TransportError):
                if (await client.get("/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Tally:
    """The requests of one kind."""

    times: list[float]
    failures: int


@contextlib.contextmanager
def crowd(service: Service, kind: str, users: int, seconds: float) -> Iterator[Any]:
    """Start locust; the process, whose output is its statistics as JSON."""
    python = environments.environment(LOCK, True, "./dev bench load")
    with tempfile.TemporaryDirectory(prefix="divingbell-load-") as folder:
        about = Path(folder, "about.json")
        about.write_text(
            json.dumps({"tokens": service.tokens, "kind": kind, "runs": str(service.runs)})
        )
        words = [python, "-m", "locust", "-f", str(USERS), "--headless", "--json"]
        words += ["-u", str(users), "-r", "10", "-t", f"{seconds:.0f}s", "--host", service.url]
        words += ["--stop-timeout", "20", "--loglevel", "ERROR", "--only-summary"]
        environment = {**os.environ, "LOAD_ABOUT": str(about)}
        quietly: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(words, env=environment, **quietly) as process:
            try:
                yield process
            finally:
                process.kill()


async def pressed(
    service: Service, kind: str, users: int, seconds: float
) -> tuple[dict[str, Tally], float]:
    """Return what locust has counted, by kind of request, and its share of one processor."""
    with crowd(service, kind, users, seconds) as process:
        began = time.monotonic()
        reading = asyncio.create_task(asyncio.to_thread(process.stdout.read))
        spent = 0.0
        while not reading.done():
            spent = _processor_time(process.pid) or spent
            await asyncio.wait([reading], timeout=1)
        share = spent / (time.monotonic() - began)
        return _tallies(json.loads(await reading)), share


def _processor_time(pid: int) -> float:
    """The seconds that a process has computed; 0 for one that has ended."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _tallies(found: list[dict[str, Any]]) -> dict[str, Tally]:
    tallies = {}
    for entry in found:
        times = [
            float(milliseconds) / 1000
            for milliseconds, count in entry["response_times"].items()
            for _ in range(count)
        ]
        tallies[entry["name"]] = Tally(sorted(times), entry["num_failures"])
    return tallies


def percentile(times: list[float], share: float) -> float:
    """A time that so large a share of all does not exceed."""
    return times[min(len(times) - 1, int(len(times) * share))]


def _rows(measure: str, tallies: Mapping[str, Tally], share: float) -> list[table.Row]:
    rows = []
    for name, tally in tallies.items():
        p95, p99 = (percentile(tally.times, at) for at in (0.95, 0.99))
        wanted = TARGETS.get(name, (None, None))
        words = [
            f"{label} {table.at_most(reached * 1000, most * 1000, ' ms')}"
            for label, reached, most in zip(("p95", "p99"), (p95, p99), wanted, strict=True)
            if most is not None
        ]
        spread = f"p95 {table.seconds(p95)}, p99 {table.seconds(p99)}"
        rows.append(
            table.Row(
                measure,
                name,
                table.seconds(percentile(tally.times, 0.5)),
                ratio=f"{tally.failures} errors",
                target="; ".join(words),
                spread=spread,
                runs=str(len(tally.times)),
            )
        )
    rows.append(table.Row(measure, "locust itself, of one processor", f"{share:.0%}"))
    return rows


async def usual(users: int, seconds: float) -> list[table.Row]:
    """Cells of all kinds, and the same people with /healthz alone."""
    async with served(users, watched=True) as service:
        cells = await pressed(service, "cells", users, seconds)
        longest = await _longest_piece(service)
    async with served(users) as service:
        health = await pressed(service, "health", users, max(seconds / 5, 5))
    measure = f"{users} users for {seconds:.0f} s"
    return [
        *_rows(measure, *cells),
        _piece_row(measure, longest),
        *_rows(f"{users} users, /healthz alone", *health),
    ]


async def _longest_piece(service: Service) -> dict[str, Any]:
    """End a service that is watched; return what it has written."""
    service.process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(service.process.wait, PATIENCE)
    found: dict[str, Any] = json.loads(service.pieces.read_text())
    return found


def _piece_row(measure: str, longest: Mapping[str, Any]) -> table.Row:
    taken = longest["processor"]
    return table.Row(
        measure,
        "longest piece of the loop, processor time",
        table.seconds(taken),
        ratio=f"{longest['of']}; by the clock {table.seconds(longest['clock'])}",
        target=table.at_most(taken * 1000, LONGEST_PIECE * 1000, " ms"),
    )


async def beside_spinners(rounds: int, of_user: int | None = None) -> list[table.Row]:
    """One user spins in 30 sessions; another runs 1+1, and asks for /healthz.

    As the service is, 8 of these cells run and the others wait for their turn; with `of_user` so
    many run at once.
    """
    async with served(2, of_user=of_user) as service, contextlib.AsyncExitStack() as stack:
        greedy, modest = [
            await stack.enter_async_context(
                httpx2.AsyncClient(
                    base_url=service.url, headers={"Authorization": f"Bearer {token}"}, timeout=120
                )
            )
            for token in service.tokens
        ]
        spin = {"code": "while True: pass", "timeout": 600}
        spinning = [
            asyncio.create_task(greedy.post(f"/api/v1/sessions/s{n}/execute", json=spin))
            for n in range(SPINNERS)
        ]
        at_once = min(SPINNERS, of_user or ServiceSettings().cells_of_user)
        async with asyncio.timeout(PATIENCE):
            while await _running_of(greedy) < at_once:  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0.1)
        cells, asked = [], []
        for _ in range(rounds):
            cells.append(await _timed(modest, "POST", "/api/v1/sessions/a/execute", "1+1"))
            asked.append(await _timed(modest, "GET", "/healthz"))
        for task in spinning:
            task.cancel()
        await asyncio.wait(spinning)
    measure = f"beside {SPINNERS} sessions of one user that spin, {at_once} at once"
    return [_beside(measure, "1+1", cells), _beside(measure, "/healthz", asked)]


async def _running_of(client: httpx2.AsyncClient) -> int:
    """Return how many cells of a user run, and do not wait."""
    listed = (await client.get("/api/v1/executions", params={"limit": 200})).json()["items"]
    return sum(each["state"] == "running" for each in listed)


async def _timed(client: httpx2.AsyncClient, method: str, path: str, code: str = "") -> float:
    began = time.perf_counter()
    response = await client.request(method, path, json={"code": code} if code else None)
    taken = time.perf_counter() - began
    response.raise_for_status()
    return taken


def _beside(measure: str, subject: str, times: list[float]) -> table.Row:
    p95 = percentile(sorted(times), 0.95)
    target = f"p95 {table.at_most(p95 * 1000, MOST_BESIDE * 1000, ' ms')}"
    return table.times(measure, subject, times, target=target)


async def faults(users: int, seconds: float) -> list[table.Row]:
    """The same load while things go wrong; each run that began has its end on record."""
    async with served(users + 2, watched=True) as service:
        greedy, hasty = service.tokens[-2:]
        with crowd(service, "cells", users, seconds) as process:
            reading = asyncio.create_task(asyncio.to_thread(process.stdout.read))
            for fault in (_kill_zygote, _kill_tools, _use_up_memory, _vanish):
                await asyncio.sleep(seconds / 6)
                await fault(service, greedy)
            await asyncio.sleep(seconds / 6)
            queued = asyncio.create_task(_queue_up(service, hasty))
            await _all_there(service, hasty)
            longest = await _longest_piece(service)
            await queued
            await reading
        measure = f"with faults for {seconds:.0f} s"
        seen = [line.split() for line in service.runs.read_text().splitlines()]
        return [
            *_recorded(measure, service.log, {run: what for run, what in seen}),
            _piece_row(measure, longest),
        ]


def _recorded(measure: str, log: Path, seen: Mapping[str, str]) -> list[table.Row]:
    """Compare what clients saw of each run, by its name, with what the audit log says."""
    begun: Counter[str] = Counter()
    ended: Counter[Any] = Counter()
    names: dict[Any, str] = {}
    statuses: dict[Any, str] = {}
    for record in records(log):
        if record["kind"] == "execution.started":
            cell = record["session"], record["cell"]
            found = NAME.search(record["code"]["text"])
            names[cell] = found[1] if found else f"unnamed {cell}"
            begun[names[cell]] += 1
        elif record["kind"] == "execution.ended":
            cell = record["session"], record["cell"]
            ended[cell] += 1
            statuses[cell] = record["status"]
    without = sum(ended[cell] != 1 for cell in names.keys() | ended.keys())
    told = {names[cell]: status for cell, status in statuses.items() if cell in names}
    counts = Counter(what if what in ("ok", "cancelled", "refused", "shut") else
                     "ended otherwise" if what in ANSWERED else "no answer"
                     for what in seen.values())  # fmt: skip
    wrong = [run for run, what in seen.items() if not _agree(what, told.get(run), begun[run])]
    for run in wrong[:10]:
        words = f"{run}: its client saw {seen[run]}, the log has {told.get(run)}"
        print(f"· {words}, begun {begun[run]} times", file=sys.stderr)
    return [
        table.Row(measure, "runs that clients asked for", str(len(seen))),
        table.Row(measure, "begun, by the audit log", str(begun.total())),
        table.Row(measure, "answered well", str(counts["ok"])),
        table.Row(
            measure, "ended otherwise (killed, limit, error)", str(counts["ended otherwise"])
        ),
        table.Row(measure, "cancelled", str(counts["cancelled"])),
        table.Row(measure, "refused", str(counts["refused"])),
        table.Row(measure, "came when the door was shut", str(counts["shut"])),
        _none(measure, "without an answer", counts["no answer"]),
        _none(measure, "runs without one end on record", without),
        _none(measure, "runs of which client and log say another thing", len(wrong)),
    ]


def _agree(seen: str, told: str | None, begun: int) -> bool:
    """Whether the log says of a run what its client saw. One that was cancelled, or failed before
    its code was looked at, need not have begun."""
    if seen in ("refused", "shut"):
        return begun == 0
    if seen == "ok":
        return begun == 1 and told == "ok"
    if begun == 0:
        return seen in ("cancelled", "error")
    return begun == 1 and (told in (seen, "left") or seen not in ANSWERED)


def _none(measure: str, subject: str, count: int) -> table.Row:
    return table.Row(measure, subject, str(count), target=f"0: {_met(not count)}")


async def _all_there(service: Service, token: str) -> None:
    """Return once the service has all runs of `_queue_up`, those that wait among them."""
    headers = {"Authorization": f"Bearer {token}"}
    async with asyncio.timeout(PATIENCE), httpx2.AsyncClient(headers=headers) as client:
        while True:
            told = await client.get(f"{service.url}/api/v1/executions", timeout=PATIENCE)
            if len(told.json()["items"]) == QUEUED:
                return
            await asyncio.sleep(0.05)


async def _queue_up(service: Service, token: str) -> None:
    """Ask for more runs than begin at once, and see what each is answered."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=60) as client:

        async def ask(number: int) -> None:
            run, path = f"queued-{number}", f"/api/v1/sessions/queued{number}/execute"
            what = "unanswered"
            try:
                code = f"# run {run}\n{QUEUED_CODE}"
                response = await client.post(path, json={"code": code})
                is_result = response.status_code == 200
                what = response.json()["status"] if is_result else "refused"
            except httpx2.ConnectError:
                what = "shut"
            except httpx2.TransportError:
                print(f"· {run} has no answer", file=sys.stderr)
            with service.runs.open("a") as file:
                file.write(f"{run} {what}\n")

        await asyncio.gather(*(ask(number) for number in range(QUEUED)))


def _met(it_is: bool) -> str:
    return "met" if it_is else "NOT met"


async def _kill_zygote(service: Service, token: str) -> None:
    """Kill the process that makes sessions."""
    _kill_child(service, "zygote")


async def _kill_tools(service: Service, token: str) -> None:
    """Kill the server of tools, which is there once one of them was called."""
    headers = {"Authorization": f"Bearer {token}"}
    call = {"code": "from servers.bench import echo; echo(text='here')"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=60) as client:
        await client.post("/api/v1/sessions/greedy/execute", json=call)
    _kill_child(service, TOOLS)


def _kill_child(service: Service, word: str) -> None:
    family = processes.family(service.process.pid, processes.children())
    for pid in set(processes.naming(word)) & set(family) - {service.process.pid}:
        os.kill(pid, signal.SIGKILL)
        return
    raise RuntimeError(f"the service has no process with {word!r} in its words")


async def _use_up_memory(service: Service, token: str) -> None:
    """Take all the memory that a session may have, with and without asking."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=60) as client:
        for code in ("b'x' * (1 << 40)", "kept = []\nwhile True: kept.append(bytearray(1 << 20))"):
            response = await client.post("/api/v1/sessions/greedy/execute", json={"code": code})
            if response.json()["status"] == "ok":
                raise RuntimeError("memory has no end")


async def _vanish(service: Service, token: str) -> None:
    """Begin twenty runs, and be gone before they have ended."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    body = {"code": "import time; time.sleep(20)"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=60) as client:
        for number in range(20):
            path = f"/api/v1/sessions/vanish{number}/execute"
            async with client.stream("POST", path, json=body) as response:
                await anext(response.aiter_bytes())


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few users, for seconds")
    parser.add_argument("--users", type=int, help="50; quick: 5")
    parser.add_argument("--seconds", type=float, help="300; quick: 4")
    parser.add_argument("--faults", action="store_true", help="only the run in which things fail")
    chosen = parser.parse_args()
    users = chosen.users or (5 if chosen.quick else 50)
    seconds = chosen.seconds or (4 if chosen.quick else 300)
    rows: list[table.Row] = []
    try:
        if not chosen.faults:
            rows += await usual(users, seconds)
            rounds = 20 if chosen.quick else 300
            rows += await beside_spinners(rounds)
            rows += await beside_spinners(rounds, of_user=SPINNERS)
        if chosen.faults or chosen.quick:
            rows += await faults(users, max(seconds, 6))
    except Unable as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{table.render(rows)}\n\n{table.heading()}")
    return 0


if __name__ == "__main__":
    with apart.home():
        status = asyncio.run(main())
    sys.exit(status)
