"""Tools through Divingbell, against the same things done directly: `./dev bench tools`.

Rows with a target say whether it was met, and by how much it was not.
"""

import argparse
import asyncio
import dataclasses
import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import apart
import table
from calling import calls, gathered
from connecting import connecting
from searching import holding, searching
from serving import serving
from tokens import reading

Part = Callable[[argparse.Namespace], Awaitable[list[table.Row]]]
PARTS: dict[str, Part] = {
    "calls": lambda chosen: calls(chosen.rounds),
    "gather": lambda chosen: gathered(chosen.rounds),
    "serve": lambda chosen: serving(chosen.rounds),
    "connect": lambda chosen: connecting(chosen.starts),
    "search": lambda chosen: searching(chosen.questions),
    "hold": lambda chosen: holding(chosen.starts),
    "tokens": lambda chosen: reading(chosen.questions),
}
FULL = {"rounds": 20, "starts": 3, "questions": 120}
QUICK = {"rounds": 4, "starts": 1, "questions": 20}
_WORDS = {
    "rounds": "turns of each way to call",
    "starts": "starts of servers and gateway",
    "questions": "questions that are searched with",
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench tools", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer of everything")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as JSON")
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
    with apart.home():
        rows, worked = asyncio.run(_measure(chosen))
    text = f"{table.heading()}\n\n{table.render(rows)}\n"
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text, encoding="utf-8")
    if chosen.json is not None:
        plain = {"heading": table.heading(), "rows": [dataclasses.asdict(row) for row in rows]}
        chosen.json.write_text(json.dumps(plain, indent=2, ensure_ascii=False), encoding="utf-8")
    sys.exit(0 if worked else 1)


if __name__ == "__main__":
    main()
