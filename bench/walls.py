"""The walls that Divingbell can have, and others that have the same: `./dev bench walls`.

Rows with a target say whether it was met, and by how much it was not. What this machine lacks has
a row that says so.
"""

import argparse
import asyncio
import dataclasses
import json
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import apart
import rivals
import table
from reaching import reaching
from starting import first, warm
from weighing import weighing

Part = Callable[[argparse.Namespace], Awaitable[list[table.Row]]]
PARTS: dict[str, Part] = {
    "first": lambda chosen: first(chosen.rounds, install=chosen.install),
    "warm": lambda chosen: warm(chosen.rounds, install=chosen.install),
    "calls": lambda chosen: reaching(chosen.rounds),
    "memory": lambda chosen: weighing(chosen.sessions),
}
FULL = {"rounds": 15, "sessions": 5}
QUICK = {"rounds": 3, "sessions": 2}
_WORDS = {
    "rounds": "turns of each wall and of each of the others",
    "sessions": "sessions alive at once, for the memory",
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench walls", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as JSON")
    parser.add_argument(
        "--no-install",
        dest="install",
        action="store_false",
        help="leave out others that are not installed yet (300 MB)",
    )
    for name, words in _WORDS.items():
        text = f"{words} ({FULL[name]}; {QUICK[name]} with --quick)"
        parser.add_argument(f"--{name}", type=int, metavar="N", help=text)
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
    # Whoever ends it in this way wants nothing left behind either.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with rivals.swept(), apart.home():
            rows, worked = asyncio.run(_measure(chosen))
    except KeyboardInterrupt:
        sys.exit(130)
    heading = " · ".join([table.heading(), *rivals.versions()])
    text = f"{heading}\n\n{table.render(rows)}\n"
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text, encoding="utf-8")
    if chosen.json is not None:
        plain = {"heading": heading, "rows": [dataclasses.asdict(row) for row in rows]}
        chosen.json.write_text(json.dumps(plain, indent=2, ensure_ascii=False), encoding="utf-8")
    sys.exit(0 if worked else 1)


if __name__ == "__main__":
    main()
