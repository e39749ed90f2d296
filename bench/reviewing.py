"""A review of a cell, beside Python's own compile() of the same cell in the same run."""

import itertools
import time
from collections.abc import Callable
from statistics import median

import table

from divingbell.models import Limits
from divingbell.review.reviewer import Reviewer
from divingbell.settings.review import ReviewSettings

MEASURE = "a cell of 2 kB"
AT_MOST = 1.0
EACH = 50
"""Turns that one figure is the median of: a single turn is too short to be told from noise."""
_PART = """
flights = pd.read_csv("flights.csv", parse_dates=["time_hour"])
flights["delay"] = flights["dep_delay"].fillna(0) + flights["arr_delay"].fillna(0)
by_carrier = (
    flights.groupby("carrier")
    .agg(flights=("flight", "count"), mean=("delay", "mean"), worst=("delay", "max"))
    .sort_values("mean", ascending=False)
)
airlines = pd.read_csv("airlines.csv").set_index("carrier")["name"]
by_carrier["name"] = by_carrier.index.map(airlines)
for carrier, row in by_carrier.head(10).iterrows():
    print(f"{row['name']}: {row['mean']:.1f} minutes in {row['flights']:,} flights")
"""
_REST = """
tries, page = 0, []
while True:
    tries += 1
    page = by_carrier[by_carrier["worst"] > 60 * tries]
    if len(page) < 10:
        break
for number in range(len(page)):
    print(number, page.index[number], page["mean"].iloc[number])
"""
SIZE = 2048
CELL = "import pandas as pd\n" + _PART * 3 + _REST + 'print("done")\n'
CELL += "#" * (SIZE - len(CELL))
_numbers = itertools.count()


async def reviewing(rounds: int) -> list[table.Row]:
    """A review and compile(), turn by turn."""
    reviewer, limits = Reviewer(ReviewSettings()), Limits()
    reviews, compiled = list[float](), list[float]()
    for _ in range(rounds):
        reviews.append(_taken(lambda cell: reviewer.review(cell, limits)))
        compiled.append(_taken(lambda cell: compile(cell, "<cell>", "exec")))
    ratio = median(reviews) / median(compiled)
    target = table.at_most(1000 * median(reviews), AT_MOST, " ms")
    return [
        table.times(MEASURE, "review", reviews, ratio=f"{ratio:.1f}×", target=target),
        table.times(MEASURE, "compile()", compiled, ratio="1"),
    ]


def _taken(work: Callable[[str], object]) -> float:
    times = []
    for _ in range(EACH):
        cell = f"{CELL[:-6]}{next(_numbers):06}"  # another one each time: trees are kept
        started = time.perf_counter()
        work(cell)
        times.append(time.perf_counter() - started)
    return median(times)
