"""Sessions on nodes beside those of the library, in one run: `./dev bench scale`.

The nodes are `divingbell node` on this machine, and for `ray` and `serve` those of a Ray cluster on
it, so what is measured is the line and what is done for it; a network adds its own.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import table
from peers import PLAIN
from runner import Amount, Benchmark
from turns import Turns, Unable

from divingbell import Divingbell, Session
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.gateway.shared import SharedGateway

sys.path.insert(0, str(Path(__file__).parents[1]))
import ray_cells
import rivals
import serve_clients
from tests.scale import nodes
from tests.scale.gateway import hosts

LIBRARY, LINE = "the library", "over a line"
OWN, SHARED = "over a line, with a gateway of its own", "over a line, and a shared gateway"
BATCH = 20
SHOP = {
    "shop": {"command": sys.executable, "args": [str(Path(__file__).parent / "tool_server.py")]}
}
CALL = "from servers.shop import echo\necho(text='x')"
PRINT = "import time; print(time.time())"
PANDAS = "import pandas as pd; int(pd.DataFrame({'a': [1, 2]}).a.sum())"
MEGABYTE = "print(('y' * 79 + '\\n') * 13106)"
Do = Callable[[Divingbell, Session], Awaitable[list[float]]]


@asynccontextmanager
async def _both(**settings: object) -> AsyncIterator[dict[str, Divingbell]]:
    async with nodes.running("n1", "n2", DIVINGBELL_PRELOAD="numpy,pandas") as found:
        addresses = [node.address for node in found]
        async with (
            Divingbell(preload=["numpy", "pandas"], pool=1, **settings) as library,  # type: ignore[arg-type]
            nodes.front(*addresses, **settings) as front,
        ):
            yield {LIBRARY: library, LINE: front}


async def _taken(do: Do, rounds: int, **settings: object) -> Turns:
    async with _both(**settings) as bells:
        sessions = {name: await bell.open() for name, bell in bells.items()}

        def way(name: str) -> Callable[[], Awaitable[list[float]]]:
            return lambda: do(bells[name], sessions[name])

        return await Turns({name: way(name) for name in bells}).take(rounds)


async def _compared(
    measure: str, do: Do, rounds: int, most: float, **settings: object
) -> table.Row:
    turns = await _taken(do, rounds, **settings)
    ratio = turns.ratio(LINE, LIBRARY)
    return table.times(
        measure,
        LINE,
        turns.times(LINE),
        ratio=f"{ratio:.2f} of the library's {table.seconds(median(turns.times(LIBRARY)))}",
        target=table.at_most(ratio, most, "×") if most else "≥ 2× actor calls: see ray",
    )


async def _later(measure: str, do: Do, rounds: int, most: float) -> table.Row:
    """Compare by the milliseconds that a line adds."""
    turns = await _taken(do, rounds)
    more = turns.difference(LINE, LIBRARY) * 1000
    return table.times(
        measure,
        LINE,
        turns.times(LINE),
        ratio=f"{more:+.2f} ms to the library's {table.seconds(median(turns.times(LIBRARY)))}",
        target=table.at_most(more, most, " ms more"),
    )


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def _run(code: str, times: int = BATCH) -> Do:
    async def do(bell: Divingbell, session: Session) -> list[float]:
        return [await _timed(session.run(code)) for _ in range(times)]

    return do


async def _opened(bell: Divingbell, session: Session) -> list[float]:
    began = time.perf_counter()
    opened = await bell.open()
    await opened.run(PANDAS)
    taken = time.perf_counter() - began
    await bell.release(opened)
    return [taken]


async def _shown(bell: Divingbell, session: Session) -> list[float]:
    """Seconds from a `print` to the event, by the one clock of this machine."""
    taken = []
    for _ in range(BATCH):
        async for event in session.stream(PRINT):
            if event.type == "stdout":
                taken.append(time.time() - float(event.text))
    return taken


async def _at_once(bell: Divingbell, session: Session) -> list[float]:
    async def several() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(16):
                group.create_task(_one())

    async def _one() -> None:
        opened = await bell.open()
        for _ in range(BATCH):
            await opened.run("1 + 1")
        await bell.release(opened)

    return [await _timed(several())]


async def warm(rounds: int) -> list[table.Row]:
    return [await _compared("1+1, warm", _run("1 + 1"), rounds, 1.4)]


async def tool(rounds: int) -> list[table.Row]:
    return [await _compared("a call of a tool", _run(CALL), rounds, 1.3, servers=SHOP)]


async def shared(rounds: int) -> list[table.Row]:
    """A call of a tool by a replica of a service, beside one whose gateway is its own."""
    with TemporaryDirectory() as folder:
        config = Path(folder, "divingbell.toml")
        table_of = SHOP["shop"]
        config.write_text(
            f"[servers.shop]\ncommand = {json.dumps(table_of['command'])}\n"
            f"args = {json.dumps(table_of['args'])}\n"
        )
        async with (
            nodes.running("n1") as [node],
            hosts.apart(str(config)) as address,
            nodes.front(node.address, servers=SHOP) as own,
        ):

            async def find() -> NodeAddress:
                return address

            link = GatewayLink(find)
            await link.start()
            settings = replace(await link.settings(), backend="ray")
            parts = SharedGateway(link, settings.policy)
            await parts.start()
            with nodes.used(nodes.FixedCluster([node.address])):
                replica = Divingbell.of(settings)
                replica._share_gateway(parts)
                async with replica:
                    for bell in (own, replica):
                        await bell.gateway.fleet.wait_until_ready("shop")
                    do = _run(CALL)
                    sessions = {
                        OWN: (own, await own.open()),
                        SHARED: (replica, await replica.open()),
                    }

                    def way(name: str) -> Callable[[], Awaitable[list[float]]]:
                        return lambda: do(*sessions[name])

                    turns = await Turns({name: way(name) for name in sessions}).take(rounds)
            await link.stop()
    ratio = turns.ratio(SHARED, OWN)
    times = turns.times(SHARED)
    words = f"{ratio:.2f} of {table.seconds(median(turns.times(OWN)))} with a gateway of its own"
    target = table.at_most(ratio, 1.3, "×")
    return [table.times("a call of a tool", SHARED, times, ratio=words, target=target)]


async def output(rounds: int) -> list[table.Row]:
    return [await _compared("1 MB of output", _run(MEGABYTE, 3), rounds, 1.5, output="4MB")]


async def opening(rounds: int) -> list[table.Row]:
    return [await _later("session → first pandas result", _opened, rounds, 3.0)]


async def shown(rounds: int) -> list[table.Row]:
    return [await _later("from a print to its event", _shown, rounds, 1.0)]


async def crowd(rounds: int) -> list[table.Row]:
    return [await _compared("16 sessions at once, 20 cells each", _at_once, rounds, 0.0)]


async def _to_its_end(events: AsyncIterator[object]) -> None:
    async for _ in events:
        pass


async def lost(rounds: int) -> list[table.Row]:
    """How soon it is told that a node was killed, or hangs."""
    rows = []
    for words, most, end in (("killed", 1.0, "kill"), ("that hangs", 5.0, "hang")):
        times = []
        for _ in range(rounds):
            async with (
                nodes.running("n1", DIVINGBELL_PRELOAD="") as [node],
                nodes.front(node.address) as bell,
            ):
                session = await bell.open()
                events = session.stream("print('begun')\nimport time; time.sleep(60)")
                await anext(events)
                getattr(node, end)()
                times.append(await _timed(_to_its_end(events)))
        rows.append(
            table.times(
                f"a node {words} is noticed",
                LINE,
                times,
                target=table.at_most(median(times), most, " s"),
            )
        )
    return rows


async def ray(rounds: int) -> list[table.Row]:
    """Cells over a line to a node that Ray has placed, beside Ray's own means."""
    async with ray_cells.running() as cluster:
        single = await Turns(await ray_cells.one_by_one(cluster, BATCH)).take(rounds)
        many = await Turns(await ray_cells.many_at_once(cluster, BATCH)).take(rounds)
        seen = await Turns(await ray_cells.printed(cluster, BATCH)).take(rounds)
    rows = []
    of_line = {
        ray_cells.LIBRARY: ("1", ""),
        ray_cells.LINE: _ratio(single, ray_cells.LIBRARY, 1.4),
        ray_cells.EMPTY: _ratio(single, ray_cells.EMPTY, 1.0),
        ray_cells.CALL: _ratio(single, ray_cells.CALL, 1.0),
    }
    for name, (ratio, target) in of_line.items():
        rows.append(
            table.times("1+1, warm, on Ray", name, single.times(name), ratio=ratio, target=target)
        )
    times = many.ratio(ray_cells.CALL, ray_cells.LINE)
    for name in (ray_cells.LINE, ray_cells.CALL):
        is_line = name == ray_cells.LINE
        rows.append(
            table.times(
                f"{ray_cells.AT_ONCE} sessions at once on {ray_cells.NODES} nodes",
                name,
                many.times(name),
                ratio=f"{times:.1f} times as many cells/s" if is_line else "1",
                target=table.at_least(times, 2.0) if is_line else "",
            )
        )
    for name in (ray_cells.LINE, ray_cells.GENERATOR):
        more = seen.difference(name, ray_cells.LIBRARY) * 1000
        target = table.at_most(more, 1.0, " ms more") if name == ray_cells.LINE else ""
        measure, words = "from a print to its event, on Ray", f"{more:+.2f} ms to the library"
        rows.append(table.times(measure, name, seen.times(name), ratio=words, target=target))
    rows.append(await _peer(rounds))
    return rows


async def _peer(rounds: int) -> table.Row:
    """Ray's own sandbox, where it runs; else what it says."""
    peer = rivals.Ray()
    measure, subject = "1+1 in a new sandbox", peer.name
    try:
        if (why := peer.missing()) is not None:
            raise Unable(why)
        async with peer.ready():
            times = [await peer.first(PLAIN) for _ in range(rounds)]
    except Unable as error:
        return table.Row(measure, subject, f"– ({rivals.briefly(error)})")
    return table.times(measure, subject, times)


async def serve(rounds: int) -> list[table.Row]:
    """MCP through two replicas of Ray Serve, beside `divingbell serve --http`."""
    return await serve_clients.rows(rounds)


def _ratio(turns: Turns, other: str, most: float) -> tuple[str, str]:
    """Return how the line compares with another way, and whether it should."""
    ratio = turns.ratio(ray_cells.LINE, other)
    words = f"the line takes {ratio:.2f} of it"
    return words, table.at_most(ratio, most, "×")


BENCHMARK = Benchmark(
    "scale",
    __doc__,
    parts={
        "warm": lambda chosen: warm(chosen.rounds),
        "tool": lambda chosen: tool(chosen.rounds),
        "shared": lambda chosen: shared(chosen.rounds),
        "output": lambda chosen: output(chosen.rounds),
        "shown": lambda chosen: shown(chosen.rounds),
        "opening": lambda chosen: opening(chosen.rounds),
        "crowd": lambda chosen: crowd(max(1, chosen.rounds // 4)),
        "ray": lambda chosen: ray(chosen.rounds),
        "serve": lambda chosen: serve(max(1, chosen.rounds // 4)),
        "lost": lambda chosen: lost(max(1, chosen.rounds // 8)),
    },
    amounts={"rounds": Amount("turns of each", 20, 2)},
)

if __name__ == "__main__":
    BENCHMARK.main()
