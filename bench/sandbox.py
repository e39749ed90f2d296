"""Divingbell and its peers, measured side by side in one run: `./dev bench`.

Rows with a target say whether it was met, and by how much it was not.
"""

import contextlib
import warnings
from collections.abc import Iterator

from crowd import crowd
from memory import memory
from one_shot import one_shot
from pauses import pauses
from runner import Amount, Benchmark
from soak import soak
from speed import first, pandas, warm
from stream import stream


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the warning of jupyter_client that its kernels talk over TCP, one for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


BENCHMARK = Benchmark(
    "sandbox",
    __doc__,
    parts={
        "first": lambda chosen: first(chosen.rounds),
        "pandas": lambda chosen: pandas(chosen.rounds),
        "stream": lambda chosen: stream(chosen.stream),
        "warm": lambda chosen: warm(chosen.rounds),
        "command": lambda chosen: one_shot(chosen.rounds),
        "memory": lambda chosen: memory(chosen.sessions),
        "soak": lambda chosen: soak(chosen.soak),
        "crowd": lambda chosen: crowd(chosen.crowd, chosen.seconds),
        "pauses": lambda chosen: pauses(chosen.crowd, chosen.seconds),
    },
    amounts={
        "rounds": Amount("turns of each peer", 20, 2),
        "stream": Amount("sessions opened one after another", 20, 10),
        "sessions": Amount("sessions alive at once, for the memory", 300, 10),
        "soak": Amount("sessions opened and closed in a row", 2000, 40),
        "crowd": Amount("sessions running at once", 50, 20),
        "seconds": Amount("for how long they do", 120.0, 2.0),
    },
    within=[_quiet],
)

if __name__ == "__main__":
    BENCHMARK.main()
