"""What a program gains by the library, beside other ways to do the same: `./dev bench library`.

Rows with a target say whether it was met, and by how much it was not.
"""

from passing import frames_in_and_out
from runner import Amount, Benchmark

BENCHMARK = Benchmark(
    "library",
    __doc__,
    parts={
        "data": lambda chosen: frames_in_and_out(chosen.megabytes, chosen.rounds),
    },
    amounts={
        "rounds": Amount("turns of each way", 10, 1),
        "megabytes": Amount("the size of the frame that goes in and out", 100, 10),
    },
)

if __name__ == "__main__":
    BENCHMARK.main()
