"""How long a command takes to start, run `1+1` and end, beside `docker run` of a bare shell."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import table
from turns import Turns

from divingbell.sandbox.contained import libraries

MEASURE = "a command: 1+1, to its end"
EXEC = "divingbell exec '1+1'"
DOCKER = "docker run of a bare shell"
PYTHON = "python -c"
TIMES_DOCKER = 2.0
IMAGE = f"divingbell-bench-shell-{os.getpid()}"
SHELL = Path("/bin/sh")
TIMEOUT = 120.0


async def one_shot(rounds: int) -> list[table.Row]:
    """All of them take turns."""
    commands = {
        EXEC: [sys.executable, "-m", "divingbell", "exec", "1+1"],
        PYTHON: [sys.executable, "-c", "print(1+1)"],
    }
    missing = ""
    with contextlib.ExitStack() as stack:
        try:
            image = stack.enter_context(_bare_shell())
            shell = ["/bin/sh", "-c", "echo $((1+1))"]
            commands[DOCKER] = ["docker", "run", "--rm", "--network=none", image, *shell]
        except (OSError, subprocess.SubprocessError) as error:
            missing = f"– ({type(error).__name__}: {error})".splitlines()[0]
        ways = {name: partial(_once, words) for name, words in commands.items()}
        turns = await Turns(ways).take(rounds)
    rows = [_row(name, turns) for name in commands]
    return [*rows, table.Row(MEASURE, DOCKER, missing)] if missing else rows


def _row(name: str, turns: Turns) -> table.Row:
    against = DOCKER if DOCKER in turns else PYTHON
    times = turns.ratio(name, against)
    target = ""
    if name == EXEC and against == DOCKER:
        target = table.at_most(times, TIMES_DOCKER, "×")
    values = turns.times(name)
    return table.times(MEASURE, name, values, ratio=f"{times:.3g}× {against}", target=target)


async def _once(command: Sequence[str]) -> list[float]:
    return [await asyncio.to_thread(_timed, command)]


def _timed(command: Sequence[str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    taken = time.perf_counter() - started
    if done.stdout != "2\n":
        raise AssertionError(f"{command}: {done.stdout!r}")
    return taken


@contextmanager
def _bare_shell() -> Iterator[str]:
    """An image with nothing but the shell of this machine; it is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="divingbell-bench-shell-") as folder:
        for path in (SHELL, *libraries.of_our_own([SHELL])):
            target = Path(folder, *path.parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        packed = subprocess.run(["tar", "-C", folder, "-c", "."], capture_output=True, check=True)
    _docker("import", "-", IMAGE, given=packed.stdout)
    try:
        yield IMAGE
    finally:
        _docker("rmi", "--force", IMAGE)


def _docker(*words: str, given: bytes = b"") -> None:
    subprocess.run(
        ["docker", *words], input=given, capture_output=True, timeout=TIMEOUT, check=True
    )
