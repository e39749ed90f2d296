"""A frame of 100 MB into a session and out of it, beside Parquet on a plain disk.

Both ways move the same frame: `set` and `get` of a session with its limits as they are, and pandas'
`to_parquet` and `read_parquet` in this process, with pyarrow. The disk is that of temporary files.
"""

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import bells
import numpy
import pandas
import table
from turns import Turns

from divingbell import Session

MEASURE = "a DataFrame of {:.0f} MB, in and out: {}"
OURS = "session.set and session.get"
PARQUET = "to_parquet and read_parquet, on disk"
TIMES_PARQUET = 2.0
ROWS_IN_A_MEGABYTE = 10_000


async def frames_in_and_out(megabytes: int, rounds: int) -> list[table.Row]:
    """Frames of numbers alone, and of numbers, times and text."""
    made = {"numbers": _numbers, "numbers, times and text": _mixed}
    rows = []
    for kind, make in made.items():
        frame = make(megabytes * ROWS_IN_A_MEGABYTE)
        rows += await _measured(MEASURE.format(megabytes, kind), frame, rounds)
    return rows


def _numbers(rows: int) -> Any:
    random = numpy.random.default_rng(1)
    columns: dict[str, Any] = {f"float {number}": random.random(rows) for number in range(12)}
    return pandas.DataFrame({**columns, "number": random.integers(0, 1000, rows)})


def _mixed(rows: int) -> Any:
    random = numpy.random.default_rng(1)
    columns: dict[str, Any] = {f"float {number}": random.random(rows) for number in range(8)}
    return pandas.DataFrame(
        {
            **columns,
            "number": random.integers(0, 1000, rows),
            "when": pandas.date_range("2026-01-01", periods=rows, freq="s"),
            "name": [f"customer {number}" for number in random.integers(0, rows, rows).tolist()],
        }
    )


async def _measured(measure: str, frame: Any, rounds: int) -> list[table.Row]:
    with tempfile.TemporaryDirectory(prefix="divingbell-bench-data-") as folder:
        path = Path(folder) / "frame.parquet"
        async with bells.ring() as bell, bell.session() as session:
            ways = {
                OURS: partial(_through_session, session, frame),
                PARQUET: partial(_through_parquet, path, frame),
            }
            turns = await Turns(ways).take(rounds)
    times = turns.ratio(OURS, PARQUET)
    target = table.at_most(times, TIMES_PARQUET, "×")
    ratio = f"{times:.3g}× {PARQUET}"
    return [
        table.times(measure, OURS, turns.times(OURS), ratio=ratio, target=target),
        table.times(measure, PARQUET, turns.times(PARQUET)),
    ]


async def _through_session(session: Session, frame: Any) -> list[float]:
    began = time.perf_counter()
    await session.set("frame", frame)
    found = await session.get("frame")
    taken = time.perf_counter() - began
    _check(found, frame)
    return [taken]


async def _through_parquet(path: Path, frame: Any) -> list[float]:
    began = time.perf_counter()
    frame.to_parquet(path)
    found = pandas.read_parquet(path)
    taken = time.perf_counter() - began
    _check(found, frame)
    return [taken]


def _check(found: Any, frame: Any) -> None:
    if not found.equals(frame):
        raise AssertionError("another frame came out than went in")
