"""Tools through Divingbell, against the same things done directly: `./dev bench tools`.

Rows with a target say whether it was met, and by how much it was not.
"""

import apart
from calling import calls, gathered
from connecting import connecting
from runner import Amount, Benchmark
from searching import holding, searching
from serving import serving
from tokens import reading

BENCHMARK = Benchmark(
    "tools",
    __doc__,
    parts={
        "calls": lambda chosen: calls(chosen.rounds),
        "gather": lambda chosen: gathered(chosen.rounds),
        "serve": lambda chosen: serving(chosen.rounds),
        "connect": lambda chosen: connecting(chosen.starts),
        "search": lambda chosen: searching(chosen.questions),
        "hold": lambda chosen: holding(chosen.starts),
        "tokens": lambda chosen: reading(chosen.questions),
    },
    amounts={
        "rounds": Amount("turns of each way to call", 20, 2),
        "starts": Amount("starts of servers and gateway", 3, 1),
        "questions": Amount("questions that are searched with", 120, 10),
    },
    within=[apart.home],
)

if __name__ == "__main__":
    BENCHMARK.main()
