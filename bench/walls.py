"""The walls that Divingbell can have, and others that have the same: `./dev bench walls`.

Rows with a target say whether it was met, and by how much it was not. What this machine lacks has
a row that says so.
"""

import apart
import rivals
from reaching import reaching
from runner import Amount, Benchmark
from starting import first, warm
from weighing import weighing

BENCHMARK = Benchmark(
    "walls",
    __doc__,
    parts={
        "first": lambda chosen: first(chosen.rounds, install=not chosen.no_install),
        "warm": lambda chosen: warm(chosen.rounds, install=not chosen.no_install),
        "calls": lambda chosen: reaching(chosen.rounds),
        "memory": lambda chosen: weighing(chosen.sessions),
    },
    amounts={
        "rounds": Amount("turns of each wall and of each of the others", 15, 1),
        "sessions": Amount("sessions alive at once, for the memory", 5, 1),
    },
    within=[rivals.swept, apart.home],
    flags={"no_install": "leave out others that are not installed yet (300 MB)"},
    made_of=rivals.versions,
)

if __name__ == "__main__":
    BENCHMARK.main()
