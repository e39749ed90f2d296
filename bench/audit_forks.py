"""Processes that are forked from one that has imported everything, and killed while they work.

Each line of standard input is a word for the work, seconds and a folder: a child works there, and
is killed so long after its first call is in a file `sent-…`. Then a line is written.
"""

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import audit_caller
import audit_writer

PATIENCE = 60.0
WORKS: Mapping[str, Callable[[Path], Awaitable[None]]] = {
    "writer": audit_writer.main,
    "caller": audit_caller.main,
}


def main() -> None:
    gc.freeze()
    for line in sys.stdin:
        work, seconds, folder = line.strip().split(maxsplit=2)
        child = os.fork()
        if child == 0:
            _work(WORKS[work], Path(folder))
        try:
            _wait_for_calls(Path(folder))
            time.sleep(float(seconds))
        finally:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if os.WTERMSIG(status) != signal.SIGKILL:
            raise RuntimeError(f"it ended of itself, with {status}")
        print("killed", flush=True)


def _work(work: Callable[[Path], Awaitable[None]], folder: Path) -> None:
    """Work until the end of this process."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1):
            os.dup2(nothing, standard)
        asyncio.run(work(folder))  # type: ignore[arg-type]
    finally:
        os._exit(1)


def _wait_for_calls(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not any(path.stat().st_size for path in folder.glob("sent-*")):
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing is called in {folder}")
        time.sleep(0.001)


if __name__ == "__main__":
    main()
