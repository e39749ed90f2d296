"""Fronts, nodes and the directory of a Ray cluster, killed at random: `./dev bench scale_chaos`.

Every run that was accepted must have one end, no session may live on two nodes, and nothing may be
left behind.
"""

import asyncio
import contextlib
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import table
from runner import Amount, Benchmark

from divingbell import Divingbell, DivingbellError

sys.path.insert(0, str(Path(__file__).parents[1]))
import chaos_front
from tests.scale import ray_machines

FRONTS = 3
MARK = "BENCH_OF_CHAOS"
"""A variable that every process of the run inherits, by which those that are left are found."""
PATIENCE = 60.0
"""Seconds for what was killed to be there again, and for what ends to have ended."""
BETWEEN = (1.0, 4.0)
"""Seconds between two kills."""
TWICE_FOR = 5.0
"""Seconds that a session may be seen at two nodes: one of them was given up, hears of it next, and
answers nobody before."""
LOOK = 0.5
MOST_ERRORS = 10_000


@dataclass
class Front:
    """A front in a process of its own, and what it has told."""

    name: str
    process: asyncio.subprocess.Process
    told: list[dict[str, Any]] = field(default_factory=list)
    errors: bytearray = field(default_factory=bytearray)
    reading: "asyncio.Future[object] | None" = None
    was_killed: bool = False

    async def read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.startswith(b"{"):
                self.told.append(json.loads(line))

    async def read_errors(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.errors += line
            del self.errors[:-MOST_ERRORS]

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.told if each["kind"] == kind]

    async def end(self) -> None:
        """Have it end as a program does that has done its work."""
        assert self.process.stdin is not None and self.reading is not None
        with contextlib.suppress(ConnectionError):
            self.process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            raise AssertionError(f"{self.name} did not end within {PATIENCE:g} s") from None
        await self.reading


async def start_front(address: str, number: int) -> Front:
    name = f"front-{number}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, chaos_front.__file__, address, name),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    front = Front(name, process)
    front.reading = asyncio.gather(front.read(), front.read_errors())
    return front


class Chaos:
    """The cluster, its fronts, and all that is done to them."""

    def __init__(self, machines: ray_machines.Machines, bell: Divingbell, seed: int) -> None:
        self._machines = machines
        self._cluster: Any = bell._engine.cluster  # type: ignore[union-attr]
        self._chance = random.Random(seed)
        self.running: list[Front] = []
        self.fronts: list[Front] = []
        self.killed: Counter[str] = Counter()
        self.twice: dict[str, float] = {}
        """Sessions that are seen at two nodes, since when."""
        self.lived_twice: list[str] = []
        self._last_machine = 1

    async def add_front(self) -> None:
        front = await start_front(self._machines.address, len(self.fronts))
        self.running.append(front)
        self.fronts.append(front)

    async def go_on(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        looking = asyncio.create_task(self._look())
        try:
            while (now := time.monotonic()) < ends:
                await asyncio.sleep(min(self._chance.uniform(*BETWEEN), ends - now))
                name, kill = self._chance.choices(
                    [("fronts", self._kill_front), ("nodes", self._kill_node),
                     ("directories", self._kill_directory), ("machines", self._kill_machine)],
                    [4, 3, 2, 1],
                )[0]  # fmt: skip
                if await kill():
                    self.killed[name] += 1
        finally:
            looking.cancel()
            await asyncio.wait([looking])
            if not looking.cancelled():
                looking.result()

    async def _kill_front(self) -> bool:
        ready = [front for front in self.running if front.kinds("ready")]
        if not ready:
            return False
        front = self._chance.choice(ready)
        self.running.remove(front)
        front.was_killed = True
        front.process.kill()
        await self.add_front()
        return True

    async def _nodes(self) -> list[dict[str, Any]]:
        try:
            found = await self._cluster.overview()
        except DivingbellError:  # the directory is being made again
            return []
        return [node for node in found if node["state"] == "up"]

    async def _kill_node(self) -> bool:
        if not (nodes := await self._nodes()):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._chance.choice(nodes)["process"], signal.SIGKILL)
        return True

    async def _kill_directory(self) -> bool:
        import ray

        await asyncio.to_thread(ray.kill, self._cluster._directory, no_restart=False)
        return True

    async def _kill_machine(self) -> bool:
        """Switch a machine off, once another is there."""
        await asyncio.to_thread(self._machines.add)
        await asyncio.to_thread(self._machines.kill, self._last_machine)
        self._last_machine += 1
        return True

    async def _look(self) -> None:
        """Look all the time at which nodes the sessions are."""
        while True:
            await asyncio.sleep(LOOK)
            await self.look()

    async def look(self) -> None:
        import ray

        from divingbell.scale.ray_actors import NAMESPACE, node_actor_name

        places: dict[tuple[str, str], set[str]] = {}
        for node in await self._nodes():
            try:
                async with asyncio.timeout(LOOK):
                    actor = ray.get_actor(node_actor_name(node["ray_node"]), namespace=NAMESPACE)
                    report = await actor.report.remote(0)
            except (ray.exceptions.RayError, ValueError, TimeoutError):
                continue  # it has just been killed
            for held in report["held"]:
                places.setdefault((held.user, held.id), set()).add(node["name"])
        now = time.monotonic()
        seen = {id for (_, id), names in places.items() if len(names) > 1}
        self.twice = {id: self.twice.get(id, now) for id in seen}
        self.lived_twice += [
            id
            for id, since in self.twice.items()
            if now - since > TWICE_FOR and id not in self.lived_twice
        ]

    async def end(self) -> None:
        for front in self.running:
            await front.end()
        for front in self.fronts:
            assert front.reading is not None
            await front.reading


def judged(fronts: list[Front]) -> list[str]:
    """Return what is wrong with the ends of runs and cells."""
    wrong = []
    for front in fronts:
        asked = Counter(each["run"] for each in front.kinds("asked"))
        answered = Counter(each["run"] for each in front.kinds("answered"))
        wrong += [f"{run} has {count} answers" for run, count in answered.items() if count > 1]
        open_runs = asked - answered
        # Those that run when a front is killed, or told to leave, have nobody to be told to.
        if open_runs.total() > chaos_front.AT_ONCE:
            wrong.append(f"{front.name} got no answer for {open_runs.total()} runs")
        for told in front.kinds("left"):
            wrong += [f"{front.name}: {fault}" for fault in told["faults"]]
        if not front.was_killed:
            if not front.kinds("left"):
                wrong.append(f"{front.name} ended by itself: {front.errors[-500:].decode()!r}")
            began = Counter(each["run"] for each in front.kinds("began"))
            ended = Counter(each["run"] for each in front.kinds("ended"))
            wrong += [f"the cell of {run} has no end" for run in began - ended]
    # Of a cell whose front was killed, another may hear; nobody hears of an end that was told.
    ended = Counter(each["run"] for front in fronts for each in front.kinds("ended"))
    wrong += [f"the cell of {run} has {count} ends" for run, count in ended.items() if count > 1]
    return wrong


def left_behind(mark: str) -> list[str]:
    """Return the processes that have the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(path.name) != os.getpid() and mark.encode() in (path / "environ").read_bytes():
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(f"{path.name} {words[:80]}")
    return found


async def _until(there: Callable[[], bool]) -> bool:
    ends = time.monotonic() + PATIENCE
    while not there():
        if time.monotonic() > ends:
            return False
        await asyncio.sleep(LOOK)
    return True


@contextlib.asynccontextmanager
async def _chaos(seed: int) -> AsyncIterator[Chaos]:
    with ray_machines.running() as machines:
        async with Divingbell(
            "ray", ray_address=machines.address, preload=[], pool=1, open_timeout=5.0
        ) as bell:
            chaos = Chaos(machines, bell, seed)
            try:
                for _ in range(FRONTS):
                    await chaos.add_front()
                yield chaos
                await chaos.end()
            finally:
                for front in chaos.fronts:
                    if front.process.returncode is None:
                        front.process.kill()
                    await front.process.wait()


async def chaos(minutes: float, seed: int) -> list[table.Row]:
    mark = secrets.token_hex(8)
    os.environ[MARK] = mark
    try:
        async with _chaos(seed) as all_of_it:
            assert await _until(lambda: all(front.kinds("ready") for front in all_of_it.fronts))
            await all_of_it.go_on(60 * minutes)
    finally:
        del os.environ[MARK]
    await _until(lambda: not left_behind(mark))
    left = left_behind(mark)
    fronts = all_of_it.fronts
    answers = Counter(each["status"] for front in fronts for each in front.kinds("answered"))
    killed = ", ".join(f"{count} {name}" for name, count in sorted(all_of_it.killed.items()))
    subject = f"{minutes:g} min, killed: {killed or 'nothing'}"
    statuses = ", ".join(f"{count} {status}" for status, count in answers.most_common())
    wrong = judged(fronts)
    rows = [
        _row("every run has one end", subject, f"{answers.total()} ({statuses})", wrong),
        _row("a session is on one node", subject, "", all_of_it.lived_twice),
        _row("nothing is left behind", subject, "", left),
    ]
    if bad := [*wrong, *all_of_it.lived_twice, *left]:
        print("\n".join(bad), file=sys.stderr)
    return rows


def _row(measure: str, subject: str, found: str, wrong: list[str]) -> table.Row:
    target = f"NOT met: {len(wrong)}, as {wrong[0]:.150}" if wrong else "met"
    return table.Row(measure, subject, found, target=target)


BENCHMARK = Benchmark(
    "scale_chaos",
    __doc__,
    parts={"chaos": lambda chosen: chaos(chosen.minutes, int(chosen.seed))},
    amounts={
        "minutes": Amount("minutes of it", 10.0, 0.15),
        "seed": Amount("of what is killed when", 1.0, 1.0),
    },
)

if __name__ == "__main__":
    BENCHMARK.main()
