"""What a program gains by the library, beside other ways to do the same: `./dev bench library`.

Rows with a target say whether it was met, and by how much it was not.
"""

import apart
from faces import imports, warm_cells
from functions import functions
from passing import frames_in_and_out
from reviewing import reviewing
from runner import Amount, Benchmark

BENCHMARK = Benchmark(
    "library",
    __doc__,
    parts={
        "data": lambda chosen: frames_in_and_out(chosen.megabytes, chosen.rounds),
        "faces": lambda chosen: warm_cells(chosen.rounds),
        "functions": lambda chosen: functions(chosen.rounds),
        "imports": lambda chosen: imports(chosen.rounds),
        "review": lambda chosen: reviewing(chosen.rounds),
    },
    amounts={
        "rounds": Amount("turns of each way", 10, 1),
        "megabytes": Amount("the size of the frame that goes in and out", 100, 10),
    },
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
