"""Divingbell and its peers, measured side by side in one run: `./dev bench`.

Rows with a target say whether it was met, and by how much it was not.
"""

import argparse
import asyncio
import sys
import traceback
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path

import table
from crowd import crowd
from memory import memory
from one_shot import one_shot
from pauses import pauses
from soak import soak
from speed import first, pandas, warm
from stream import stream

Part = Callable[[argparse.Namespace], Awaitable[list[table.Row]]]
PARTS: dict[str, Part] = {
    "first": lambda chosen: first(chosen.rounds),
    "pandas": lambda chosen: pandas(chosen.rounds),
    "stream": lambda chosen: stream(chosen.stream),
    "warm": lambda chosen: warm(chosen.rounds),
    "command": lambda chosen: one_shot(chosen.rounds),
    "memory": lambda chosen: memory(chosen.sessions),
    "soak": lambda chosen: soak(chosen.soak),
    "crowd": lambda chosen: crowd(chosen.crowd, chosen.seconds),
    "pauses": lambda chosen: pauses(chosen.crowd, chosen.seconds),
}
FULL = {"rounds": 20, "stream": 20, "sessions": 300, "soak": 2000, "crowd": 50, "seconds": 120.0}
QUICK = {"rounds": 4, "stream": 20, "sessions": 30, "soak": 100, "crowd": 50, "seconds": 15.0}
_WORDS = {
    "rounds": "turns of each peer",
    "stream": "sessions opened one after another",
    "sessions": "sessions alive at once, for the memory",
    "soak": "sessions opened and closed in a row",
    "crowd": "sessions running at once",
    "seconds": "for how long they do",
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench sandbox", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here too")
    for name, words in _WORDS.items():
        kind = type(FULL[name])
        text = f"{words} ({FULL[name]:g}; {QUICK[name]:g} with --quick)"
        parser.add_argument(f"--{name}", type=kind, metavar="N", help=text)
    chosen = parser.parse_args()
    for name, value in (QUICK if chosen.quick else FULL).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    return chosen


async def _measure(chosen: argparse.Namespace) -> tuple[list[table.Row], bool]:
    """The rows of all parts that were chosen, and whether each of them worked."""
    rows: list[table.Row] = []
    worked = True
    for name, part in PARTS.items():
        if chosen.only is None or name in chosen.only:
            print(f"· measuring {name}", file=sys.stderr, flush=True)
            try:
                rows += await part(chosen)
            except Exception as error:  # the figures of the other parts are still worth having
                traceback.print_exc()
                rows.append(table.Row(name, "it failed", f"– ({type(error).__name__}: {error})"))
                worked = False
    return rows, worked


def main() -> None:
    chosen = _arguments()
    # jupyter_client warns that its kernels talk over TCP, once for each of them.
    warnings.simplefilter("ignore")
    rows, worked = asyncio.run(_measure(chosen))
    text = f"{table.heading()}\n\n{table.render(rows)}\n"
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text, encoding="utf-8")
    sys.exit(0 if worked else 1)


if __name__ == "__main__":
    main()
