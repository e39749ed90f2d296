"""Datasets as DataFrames, beside reading the same files by hand: `./dev bench datasets`.

The table is nycflights13 where DIVINGBELL_TEST_DATA has it, else one of flights that are made up:
nineteen columns of numbers, short texts and times, with NA for what is missing. As JSON it comes in
pages, because a gateway takes no message with so many values.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import apart
import bells
import flights
import table
from runner import Amount, Benchmark
from turns import Turns

from divingbell import Divingbell, Session
from divingbell.host import profile
from divingbell.shares import processors

READ, NEW, KEPT = "pd.read_csv on a mount", "import_dataset, first time", "import_dataset, kept"
FILE, ROWS = "import_dataset", "a tool that returns the rows as JSON, 2,000 a page"
QUERY, ALONE = "query_dataset in 512 MB", "DuckDB alone, as many threads"
GROUPED = "SELECT origin, carrier, count(*) AS n, avg(dep_delay) AS delay FROM {} GROUP BY ALL"
ALONE_CODE = """
import duckdb, sys, time
path, threads = sys.argv[1], int(sys.argv[2])
began = time.perf_counter()
with duckdb.connect(config={"threads": threads}) as database:
    database.execute("SET enable_progress_bar = false")
    found = database.execute(
        "SELECT origin, carrier, count(*) AS n, avg(dep_delay) AS delay "
        "FROM read_csv(?, nullstr=['NA', '']) GROUP BY ALL", [path]).fetchall()
print(time.perf_counter() - began)
"""


@asynccontextmanager
async def _folder(*, rows: int | None = None, size: int | None = None) -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="divingbell-bench-datasets-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        write = partial(flights.write, folder / flights.NAME, rows=rows, size=size)
        await asyncio.to_thread(write)
        yield folder


async def _timed(session: Session, code: str) -> float:
    """Seconds of a line of code, by the clock of the session."""
    result = await session.run(
        f"import time; frame = None; began = time.perf_counter()\n{code}\n"
        "time.perf_counter() - began"
    )
    if result.status != "ok" or type(result.value) is not float:
        raise RuntimeError(f"{code}: {result.error}")
    return result.value


async def _opened(bell: Divingbell, session: Session) -> None:
    """Load what any program would have loaded before."""
    await _timed(
        session, "from servers.data import *; import pandas as pd, duckdb; list_datasets()"
    )


async def imports(rows: int, rounds: int) -> list[table.Row]:
    """A whole table as a DataFrame."""
    async with (
        _folder(rows=rows) as folder,
        bells.ring(
            servers={"data": {"datasets": str(folder)}}, mounts={"/flights": str(folder)}
        ) as bell,
        bell.session(memory="1GB") as session,  # pandas' own reader needs nearly as much
    ):
        await _opened(bell, session)

        async def read() -> list[float]:
            return [await _timed(session, "frame = pd.read_csv('/flights/flights.csv')")]

        async def imported(*, changed: bool) -> list[float]:
            if changed:
                os.utime(folder / "flights.csv")
            return [await _timed(session, "frame = import_dataset('flights')")]

        new, kept = partial(imported, changed=True), partial(imported, changed=False)
        turns = await Turns({READ: read, NEW: new, KEPT: kept}).take(rounds)
    measure = f"{flights.source()}: {rows:,} rows × 19 columns as a DataFrame"
    return [
        _compared(measure, turns, NEW, READ, 3.5),
        _compared(measure, turns, KEPT, READ, 1.6),
        table.times(measure, READ, turns.times(READ)),
    ]


def _compared(measure: str, turns: Turns, name: str, other: str, most: float) -> table.Row:
    times = turns.ratio(name, other)
    target = table.at_most(times, most, "×")
    return table.times(
        measure, name, turns.times(name), ratio=f"{times:.3g}× {other}", target=target
    )


async def beside_json(rounds: int) -> list[table.Row]:
    """20,000 rows as a file, and as JSON from a tool."""
    server = Path(__file__).parent / "rows_server.py"
    async with (
        _folder(rows=20_000) as folder,
        bells.ring(
            servers={
                "data": {"datasets": str(folder)},
                "rows": {"command": sys.executable, "args": [str(server), str(folder)]},
            }
        ) as bell,
        bell.session() as session,
    ):
        await _opened(bell, session)

        async def by_file() -> list[float]:
            return [await _timed(session, "frame = import_dataset('flights')")]

        async def by_json() -> list[float]:
            pages = "[row for start in range(0, 20_000, 2_000) for row in flights(start)]"
            code = f"from servers.rows import flights; frame = pd.DataFrame({pages})"
            return [await _timed(session, code)]

        turns = await Turns({FILE: by_file, ROWS: by_json}).take(rounds)
    times = turns.ratio(ROWS, FILE)
    measure = f"{flights.source()}: 20,000 rows × 19 columns as a DataFrame"
    return [
        table.times(
            measure,
            FILE,
            turns.times(FILE),
            ratio=f"{times:.3g}× as fast as JSON",
            target=table.at_least(times, 5),
        ),
        table.times(measure, ROWS, turns.times(ROWS)),
    ]


async def queries(megabytes: int, rounds: int) -> list[table.Row]:
    """A grouped query over a large CSV, in little memory."""
    from mcp import Client

    from divingbell.datasets.opening import opened
    from divingbell.datasets.sealed_reader import default_limits
    from divingbell.settings.config import Settings, with_limits

    settings = Settings(limits=with_limits(default_limits(), {"memory": "512MB", "disk": "64MB"}))
    python = (await asyncio.to_thread(profile.prepare)).python
    async with (
        _folder(size=megabytes * 1_000_000) as folder,
        opened(folder, settings) as (made, bell),
        Client(made.server, read_timeout_seconds=600) as client,
    ):
        path = folder / "flights.csv"
        size = path.stat().st_size / 1e6
        await bell.ready()

        async def ours() -> list[float]:
            began = time.perf_counter()
            result = await client.call_tool("query_dataset", {"sql": GROUPED.format("flights")})
            taken = time.perf_counter() - began
            if result.is_error:
                raise RuntimeError(json.dumps(result.model_dump(mode="json")))
            return [taken]

        async def alone() -> list[float]:
            words = [str(python), "-I", "-c", ALONE_CODE, str(path), str(processors.count())]
            done = await asyncio.to_thread(
                subprocess.run, words, capture_output=True, text=True, check=True
            )
            return [float(done.stdout)]

        turns = await Turns({QUERY: ours, ALONE: alone}).take(rounds)
    measure = f"{flights.source()}: a grouped query over a CSV of {size:,.0f} MB"
    return [
        _compared(measure, turns, QUERY, ALONE, 1.3),
        table.times(measure, ALONE, turns.times(ALONE)),
    ]


BENCHMARK = Benchmark(
    "datasets",
    __doc__,
    parts={
        "imports": lambda chosen: imports(int(chosen.rows), int(chosen.rounds)),
        "json": lambda chosen: beside_json(int(chosen.rounds)),
        "queries": lambda chosen: queries(int(chosen.megabytes), int(chosen.rounds)),
    },
    amounts={
        "rows": Amount("rows of the table that is imported", 336_776, 20_000),
        "rounds": Amount("turns of each way", 7, 1),
        "megabytes": Amount("the size of the CSV that is queried, about", 1000, 300),
    },
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
