"""Pieces of work of an event loop: how long each holds it, by processor time and by the clock.

As a program it runs a `divingbell` command with its pieces watched, and writes the longest to a
file at its end: `python pieces.py FILE serve --http …`. SIGUSR2 has it begin anew.
"""

import asyncio
import json
import signal
import sys
import time
from asyncio import events
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Pieces:
    """The longest piece so far: its processor time, what it was, and the longest by the clock.

    A piece is what the loop calls in one go. The clock also has what else the machine did.
    """

    processor: float = 0.0
    of: str = ""
    clock: float = 0.0

    def begin_anew(self) -> None:
        self.processor, self.of, self.clock = 0.0, "", 0.0

    def watch(self) -> None:
        """Look at all that loops of this process do from now on."""
        run = events.Handle._run

        def watched(handle: Any) -> None:
            clock, processor = time.perf_counter(), time.thread_time()
            run(handle)
            taken = time.thread_time() - processor
            self.clock = max(self.clock, time.perf_counter() - clock)
            if taken > self.processor:
                self.processor, self.of = taken, _name(handle)

        events.Handle._run = watched  # type: ignore[method-assign]


def _name(handle: Any) -> str:
    callback = handle._callback
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return f"a step of {task.get_coro().__qualname__}"  # type: ignore[union-attr]
    return getattr(callback, "__qualname__", None) or str(callback)[:60]


def main() -> None:
    from divingbell.surfaces.cli import main as command

    file, pieces = Path(sys.argv[1]), Pieces()
    sys.argv[1:] = sys.argv[2:]
    # Told once it is ready: what is loaded before that holds up nobody.
    signal.signal(signal.SIGUSR2, lambda *_: pieces.begin_anew())
    pieces.watch()
    try:
        sys.exit(command())
    finally:
        file.write_text(json.dumps(asdict(pieces)))


if __name__ == "__main__":
    main()
