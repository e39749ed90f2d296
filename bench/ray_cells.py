"""Cells on a Ray cluster: over our line, and by Ray's own means, for `./dev bench scale`."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.scale import ray_machines
from tests.waiting import until
from turns import Way

from divingbell import Divingbell, Session

LIBRARY = "the library"
LINE = "over a line to a node of Ray"
CALL = "the cell as an actor call"
EMPTY = "an empty actor call"
GENERATOR = "a streaming actor generator"
AT_ONCE = 16
NODES = 2
CODE = "1 + 1"
RIGHT = "2"
PRINT = "import time; print(time.time())"


class Cells:
    """An actor of Ray that runs cells for whoever calls it, by the library."""

    def __init__(self) -> None:
        self._bell = Divingbell("local", preload=[], pool=AT_ONCE)
        self._sessions: dict[int, Session] = {}

    async def begin(self) -> None:
        await self._bell.__aenter__()

    async def open(self, number: int) -> None:
        self._sessions[number] = await self._bell.open()

    async def run(self, number: int, code: str) -> str:
        return (await self._sessions[number].run(code)).text

    async def shown(self, number: int, code: str) -> AsyncIterator[str]:
        """Yield what a cell prints, as it does."""
        async for event in self._sessions[number].stream(code):
            if event.type == "stdout":
                yield event.text

    async def nothing(self) -> None:
        """Do nothing: what is left is the call."""

    async def end(self) -> None:
        await self._bell.__aexit__(None, None, None)


class Cluster(NamedTuple):
    """What is measured: the library, a front, and an actor for each node."""

    library: Divingbell
    front: Divingbell
    actors: list[Any]


@asynccontextmanager
async def running() -> AsyncIterator[Cluster]:
    """A Ray cluster of two nodes on this machine."""
    with ray_machines.running() as machines:
        import ray
        from ray import cloudpickle

        cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers have no path to it
        async with (
            Divingbell("local", preload=[], pool=AT_ONCE) as library,
            Divingbell("ray", ray_address=machines.address, preload=[], pool=AT_ONCE) as front,
        ):
            cluster: Any = front._engine.cluster  # type: ignore[union-attr]

            async def all_are_up() -> bool:
                return len(await cluster.nodes()) == NODES

            await until(all_are_up, "all nodes are up")
            remote = ray.remote(Cells).options(num_cpus=1, max_concurrency=2 * AT_ONCE)
            actors = [remote.remote() for _ in range(NODES)]
            try:
                await asyncio.gather(*(actor.begin.remote() for actor in actors))
                yield Cluster(library, front, actors)
            finally:
                await asyncio.gather(*(actor.end.remote() for actor in actors))


async def one_by_one(cluster: Cluster, times: int) -> dict[str, Way]:
    """Return the ways to have one cell after the other run, and to call an actor for nothing."""
    ways: dict[str, Way] = {}
    for name, bell in ((LIBRARY, cluster.library), (LINE, cluster.front)):
        ways[name] = _each_timed(_cell(await bell.open()), times)
    actor = cluster.actors[0]
    await actor.open.remote(0)
    ways[CALL] = _each_timed(_actor_cell(actor, 0), times)
    ways[EMPTY] = _each_timed(lambda: actor.nothing.remote(), times)
    return ways


async def many_at_once(cluster: Cluster, times: int) -> dict[str, Way]:
    """Return the ways to have cells of sixteen sessions on two nodes run at once."""
    sessions = [await cluster.front.open() for _ in range(AT_ONCE)]
    for number in range(1, AT_ONCE + 1):
        await cluster.actors[number % NODES].open.remote(number)
    called = [
        _actor_cell(cluster.actors[number % NODES], number) for number in range(1, AT_ONCE + 1)
    ]
    return {LINE: _all_timed([_cell(each) for each in sessions], times),
            CALL: _all_timed(called, times)}  # fmt: skip


async def printed(cluster: Cluster, times: int) -> dict[str, Way]:
    """Return the ways to see what a cell prints: seconds from the print to its event."""
    ways: dict[str, Way] = {}
    for name, bell in ((LIBRARY, cluster.library), (LINE, cluster.front)):
        ways[name] = _seen(_events(await bell.open()), times)
    actor = cluster.actors[0]
    await actor.open.remote(AT_ONCE + 1)
    ways[GENERATOR] = _seen(_generated(actor, AT_ONCE + 1), times)
    return ways


def _events(session: Session) -> Callable[[], AsyncIterator[str]]:
    async def texts() -> AsyncIterator[str]:
        async for event in session.stream(PRINT):
            if event.type == "stdout":
                yield event.text

    return texts


def _generated(actor: Any, number: int) -> Callable[[], AsyncIterator[str]]:
    async def texts() -> AsyncIterator[str]:
        method = actor.shown.options(num_returns="streaming")
        async for reference in method.remote(number, PRINT):
            yield await reference

    return texts


def _seen(texts: Callable[[], AsyncIterator[str]], times: int) -> Way:
    async def turn() -> list[float]:
        taken = []
        for _ in range(times):
            async for text in texts():
                taken.append(time.time() - float(text))
        return taken

    return turn


Do = Callable[[], Awaitable[object]]


def _cell(session: Session) -> Do:
    async def do() -> None:
        assert (await session.run(CODE)).text.strip() == RIGHT

    return do


def _actor_cell(actor: Any, number: int) -> Do:
    async def do() -> None:
        assert (await actor.run.remote(number, CODE)).strip() == RIGHT

    return do


def _each_timed(do: Do, times: int) -> Way:
    async def turn() -> list[float]:
        taken = []
        for _ in range(times):
            began = time.perf_counter()
            await do()
            taken.append(time.perf_counter() - began)
        return taken

    return turn


def _all_timed(each: list[Do], times: int) -> Way:
    async def several(do: Do) -> None:
        for _ in range(times):
            await do()

    async def turn() -> list[float]:
        began = time.perf_counter()
        await asyncio.gather(*map(several, each))
        return [time.perf_counter() - began]

    return turn
