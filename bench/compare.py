"""Two checkouts side by side: processor time of the host for a warm `1+1`, and for a tool call.

    ./dev bench compare --with ../before [--quick]

Measures what a change has cost: of the thread that runs the event loop, in alternating rounds of
one run, so that what else happens on the machine hits both.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import table

HERE = Path(__file__).resolve()
SERVER = HERE.with_name("tool_server.py")
BATCH = 200
"""Cells in a round, and as many calls."""
CALLS = f"""
from servers.bench import echo
for number in range({BATCH}):
    echo("x")
"""
WHATS = ("warm 1+1", "tool call")


async def work() -> None:
    """In a process of its own: do a round for each line that comes in, and print its figures."""
    from divingbell import Divingbell

    servers = {"bench": {"command": sys.executable, "args": [str(SERVER)]}}
    options = {"pool": 0, "preload": [], "copy_after": 0.0, "servers": servers, "search": "words"}
    policy = {"calls_per_session": 0, "calls_per_cell": 0}
    async with (
        Divingbell(**options, policy=policy) as bell,
        bell.session(cpu_seconds=3600.0) as session,
    ):
        await session.run(CALLS)
        print("ready", flush=True)
        while (await asyncio.to_thread(sys.stdin.readline)).strip():
            taken = []
            for code, times in (("1+1", BATCH), (CALLS, 1)):
                before = time.thread_time()
                for _ in range(times):
                    result = await session.run(code)
                    assert result.status == "ok", result
                taken.append((time.thread_time() - before) / BATCH)
            print(json.dumps(taken), flush=True)


class Checkout:
    """A process that runs the code of one checkout, with the packages of this one."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE), "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root / "src")},
        )
        self.figures: list[list[float]] = []
        self._read()

    def measure(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        self.figures.append(json.loads(self._read()))

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the checkout's process has ended")
        return line

    def close(self) -> None:
        self._process.communicate()


def rows(before: Checkout, now: Checkout) -> list[table.Row]:
    """What this checkout takes more, in microseconds, as the median of pairs of rounds."""
    found = []
    for at, what in enumerate(WHATS):
        old, new = ([figures[at] * 1e6 for figures in one.figures] for one in (before, now))
        more = sorted(b - a for a, b in zip(old, new, strict=True))
        found.append(table.Row(what, "before", f"{median(old):.0f} µs", runs=str(len(old))))
        found.append(
            table.Row(
                what,
                "now",
                f"{median(new):.0f} µs",
                f"{median(more):+.0f} µs",
                spread=f"{more[len(more) // 10]:+.0f} … {more[-1 - len(more) // 10]:+.0f} µs",
                runs=str(len(new)),
            )
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--with", dest="other", type=Path, help="another checkout, of before")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        asyncio.run(work())
        return
    if options.other is None or not (options.other / "src" / "divingbell").is_dir():
        parser.error("name another checkout: --with FOLDER")
    pair = (Checkout(options.other.resolve()), Checkout(HERE.parents[1]))
    try:
        for number in range(4 if options.quick else options.rounds):
            for one in pair if number % 2 else reversed(pair):
                one.measure()
    finally:
        for one in pair:
            one.close()
    print(table.heading())
    print(table.render(rows(*pair)))


if __name__ == "__main__":
    main()
