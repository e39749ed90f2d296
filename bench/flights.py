"""Tables of flights: the real one of nycflights13 where it is there, else one that is made up.

`datasets/nycflights13/flights.csv.zip` in the folder that DIVINGBELL_TEST_DATA names is the real
one: 336,776 rows. The other has the same nineteen columns of numbers, short texts and times, with
NA for what is missing.
"""

import functools
import os
import random
import zipfile
from pathlib import Path

VARIABLE = "DIVINGBELL_TEST_DATA"
NAME = "flights.csv"
COLUMNS = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour\n"
)
MADE_UP = 50_000
"""Rows that are made up; more are the same once again."""


def _real() -> Path | None:
    folder = os.environ.get(VARIABLE)
    path = Path(folder or "", "datasets", "nycflights13", f"{NAME}.zip")
    return path if folder and path.is_file() else None


def source() -> str:
    """Return which of the two it is."""
    return "nycflights13" if _real() else "made-up flights"


@functools.cache
def _lines() -> tuple[str, ...]:
    if (real := _real()) is None:
        return _made_up()
    with zipfile.ZipFile(real) as archive:
        header, *lines = archive.read(NAME).decode().splitlines(keepends=True)
    if header != COLUMNS:
        raise SystemExit(f"{real} has other columns than nycflights13")
    return tuple(lines)


def _made_up() -> tuple[str, ...]:
    chance = random.Random(1)
    carriers, airports = ("UA", "AA", "B6", "DL", "EV", "MQ"), ("EWR", "JFK", "LGA")
    lines = []
    for _ in range(MADE_UP):
        month, day, hour, minute = (chance.randint(1, n) for n in (12, 28, 23, 59))
        delay = "NA" if chance.random() < 0.03 else str(chance.randint(-20, 200))
        lines.append(
            f"2013,{month},{day},{hour}{minute:02},{hour}00,{delay},{hour}59,{hour}50,{delay},"
            f"{chance.choice(carriers)},{chance.randint(1, 6000)},N{chance.randint(10000, 99999)},"
            f"{chance.choice(airports)},IAH,{chance.randint(30, 400)},{chance.randint(90, 3000)},"
            f"{hour},{minute},2013-{month:02}-{day:02}T{hour:02}:00:00Z\n"
        )
    return tuple(lines)


def write(path: Path, *, rows: int | None = None, size: int | None = None) -> None:
    """Write the first `rows` flights, or `size` bytes of them: the same each time, and again from
    the first once there are no more."""
    lines = _lines()
    if rows is None:
        assert size is not None
        rows = round(size * len(lines) / sum(map(len, lines)))
    with path.open("w") as file:
        file.write(COLUMNS)
        while rows > 0:
            file.writelines(lines[:rows])
            rows -= len(lines)
    path.chmod(0o644)
