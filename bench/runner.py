"""A benchmark of several parts: its options, one part after the other, and the table at the end."""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import table

Part = Callable[[argparse.Namespace], Awaitable[list[table.Row]]]


@dataclass(frozen=True, slots=True)
class Amount:
    """An option that says how much of something is measured."""

    words: str
    full: float
    quick: float


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The parts of one `./dev bench NAME`, and how much of each there is."""

    name: str
    description: str
    parts: Mapping[str, Part]
    amounts: Mapping[str, Amount]
    within: Sequence[Callable[[], contextlib.AbstractContextManager[object]]] = ()
    """Entered around the whole run, in this order."""
    flags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Options that turn off what is otherwise done: `no_install` is --no-install."""
    made_of: Callable[[], list[str]] = list
    """More for the heading: versions of what is measured beside Divingbell."""

    def main(self) -> None:
        """Do what the command line says; the status is 1 if a part failed."""
        chosen = self._arguments()
        # Whoever ends it in this way wants nothing left behind either.
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            with contextlib.ExitStack() as stack:
                for make in self.within:
                    stack.enter_context(make())
                rows, worked = asyncio.run(self._measure(chosen))
        except KeyboardInterrupt:
            sys.exit(130)
        heading = " · ".join([table.heading(), *self.made_of()])
        text = f"{heading}\n\n{table.render(rows)}\n"
        print(text)
        if chosen.markdown is not None:
            chosen.markdown.write_text(text, encoding="utf-8")
        if chosen.json is not None:
            plain = {"heading": heading, "rows": [dataclasses.asdict(row) for row in rows]}
            written = json.dumps(plain, indent=2, ensure_ascii=False)
            chosen.json.write_text(written, encoding="utf-8")
        sys.exit(0 if worked else 1)

    def _arguments(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(
            prog=f"./dev bench {self.name}", description=self.description
        )
        parser.add_argument("--quick", action="store_true", help="fewer of everything")
        parser.add_argument(
            "--only", action="append", choices=self.parts, help="this part; may be repeated"
        )
        add_outputs(parser)
        for name, words in self.flags.items():
            parser.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=words)
        for name, amount in self.amounts.items():
            text = f"{amount.words} ({amount.full:g}; {amount.quick:g} with --quick)"
            parser.add_argument(f"--{name}", type=type(amount.full), metavar="N", help=text)
        chosen = parser.parse_args()
        for name, amount in self.amounts.items():
            if getattr(chosen, name) is None:
                setattr(chosen, name, amount.quick if chosen.quick else amount.full)
        return chosen

    async def _measure(self, chosen: argparse.Namespace) -> tuple[list[table.Row], bool]:
        """The rows of all parts that were chosen, and whether each of them worked."""
        rows: list[table.Row] = []
        worked = True
        for name, part in self.parts.items():
            if chosen.only is not None and name not in chosen.only:
                continue
            print(f"· measuring {name}", file=sys.stderr, flush=True)
            try:
                rows += await part(chosen)
            except Exception as error:  # the figures of the other parts are still worth having
                traceback.print_exc()
                rows.append(table.Row(name, "it failed", f"– ({type(error).__name__}: {error})"))
                worked = False
        return rows, worked


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that every benchmark has for keeping what it found."""
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as JSON")
