"""`divingbell demo`: a short show. Everything is done live, and every number is measured."""

import asyncio
import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.app import Divingbell
from divingbell.escapes import clean
from divingbell.host import private_file
from divingbell.models import Output, Result
from divingbell.session.base import SessionHandle
from divingbell.settings.config import Settings
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Server
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.running import opened
from divingbell.surfaces.cli.terminal.printing import in_force

if TYPE_CHECKING:
    from divingbell.surfaces.cli.terminal.console import Console

PICTURE = "divingbell-demo.png"
ROUND_TRIPS = 200
OPENINGS = 5
REFILL = 0.4
"""Seconds that the pool is given to have sessions ready again."""
TIMEOUT = 1.0

SHOP = Path(__file__).with_name("demo_shop.py")
TOOLS = """\
import pandas as pd
from servers.shop import get_customer, list_orders

pages = [list_orders(page=number) for number in range(1, 7)]
orders = pd.DataFrame(order for page in pages for order in page)
usual = orders.groupby("product").amount.transform("median")
strange = orders[orders.amount > 20 * usual]
print(f"{len(orders):,} orders, {len(strange)} with an amount that can't be right:")
for order in strange.itertuples():
    print(order.id, order.product, order.amount, get_customer(id=order.customer)["name"])"""
PLOT = """\
ax = orders.drop(strange.index).groupby("product").amount.sum().plot.bar(title="Revenue", rot=0)"""
STATE = "f'{len(orders):,} rows, {orders.units.sum():,} units'"
COUNT = "len(orders)"
MEMORY = """\
blocks = []
while True: blocks.append(bytearray(64 << 20))"""
FOREVER = "while True: pass"
MOUNT = """\
import ctypes, os
if ctypes.CDLL(None, use_errno=True).mount(b"none", b"/tmp", b"tmpfs", 0, None) != 0:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))"""


@dataclass(frozen=True)
class Attack:
    """Something that code in a sandbox must not get done."""

    name: str
    code: str


def attacks(picture: Path) -> tuple[Attack, ...]:
    """Return the attacks to try. `picture` is a file of this machine, which the reader can look
    at."""
    return (
        Attack(
            "talk to the network",
            "import socket; socket.create_connection(('192.0.2.1', 53), timeout=5)",
        ),
        Attack("read /etc/shadow", "open('/etc/shadow').read()"),
        Attack("read the plot saved above", f"open({str(picture)!r}, 'rb').read()"),
        Attack(
            "run a program as the host's root",
            "open('/proc/sys/kernel/core_pattern', 'w').write('|/tmp/evil')",
        ),
        Attack("mount a file system", MOUNT),
    )


async def show(settings: Settings) -> int:
    """Run the show; return the exit status, 1 if something was not as promised."""
    from divingbell.surfaces.cli.terminal.console import Console

    stage = Stage(Console())
    # The shop and nothing else: the rules and servers of whoever watches are not played with.
    shop = Server("shop", command=sys.executable, args=(str(SHOP),))
    settings = dataclasses.replace(settings, servers=(shop,), policy=Policy())
    started = time.perf_counter()
    async with opened(settings) as bell:
        ready = time.perf_counter() - started
        async with bell.session() as session:
            await _tools(stage, session)
            picture = await _work(stage, session)
            await _attacks(stage, session, picture)
            await _limits(stage, session)
        await _timings(stage, bell, ready)
    return exit_status.OK if stage.as_promised else exit_status.FAILED


class Stage:
    """The terminal that the demo is printed on, and whether all went as promised."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self.as_promised = True

    def title(self, text: str) -> None:
        self._console.print()
        self.say(text, "bold")

    def code(self, code: str) -> None:
        from rich.text import Text

        for number, line in enumerate(code.splitlines()):
            prompt = ">>> " if number == 0 else "... "
            self._console.print(Text.assemble((prompt, "dim"), (line, "cyan")), soft_wrap=True)

    def say(self, text: str, style: str = "") -> None:
        self._console.print(clean(text), style=style, markup=False, soft_wrap=True)

    def row(self, good: bool, name: str, detail: str, width: int = 32) -> None:
        """Print one line with its verdict. One that is bad is not hidden: it fails the demo."""
        from rich.text import Text

        self.as_promised &= good
        sign = ("✓", "green") if good else ("✗", "bold red")
        self._console.print(
            Text.assemble("  ", sign, f" {name:<{width}} ", (clean(detail), "dim")),
            soft_wrap=True,
        )

    def expect(self, result: Result) -> None:
        """Show a failure of what should have gone well."""
        if result.error is not None:
            self.row(False, "this should have worked", str(result.error))


async def _tools(stage: Stage, session: SessionHandle) -> None:
    stage.say("Code that calls the tools of an MCP server, as a model would write it", "bold")
    stage.code(TOOLS)
    result = await session.run(TOOLS)
    stage.expect(result)
    stage.say(result.text.rstrip())
    if (ledger := result.ledger) is not None:
        read, spared = ledger.code_tokens + ledger.output_tokens, ledger.direct_call_tokens
        stage.row(
            0 < read < spared,
            "tokens of the model",
            f"{read:,} instead of {spared:,}: {1 - read / max(spared, 1):.1%} fewer",
        )
        stage.say(
            f"    {read:,} for the code and what it printed. {spared:,} for the arguments and "
            f"results of its {ledger.calls} calls,\n    which a model that calls tools itself "
            "would read. Counted as o200k_base does.",
            "dim",
        )
    else:
        stage.row(False, "tokens of the model", "were not counted")


async def _work(stage: Stage, session: SessionHandle) -> Path:
    stage.title("A plot, and variables that stay")
    stage.code(PLOT)
    plot = await session.run(PLOT)
    stage.expect(plot)
    image = next((output for output in plot.outputs if output.type == "image/png"), None)
    picture = Path(PICTURE).absolute() if image is None else _save(image)
    stage.row(image is not None, "a plot", f"saved as {picture}" if image else "is missing")
    stage.code(STATE)
    state = await session.run(STATE)
    stage.expect(state)
    stage.say(state.text.rstrip())
    return picture


def _save(image: Output) -> Path:
    """Store the picture in the current folder, or where that can't be written, in a new one."""
    assert isinstance(image.data, bytes)
    path = Path(PICTURE)
    try:
        private_file.write(path, image.data)  # not through a link that lies there
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="divingbell-")) / PICTURE
        path.write_bytes(image.data)
    return path.absolute()


async def _attacks(stage: Stage, session: SessionHandle, picture: Path) -> None:
    stage.title(f"What the code can't do: {in_force(session.isolation)}")
    for attack in attacks(picture):
        result = await session.run(attack.code, timeout=10)
        error = result.error
        detail = "it worked" if error is None else f"{error.type}: {error.message}"
        stage.row(error is not None, attack.name, detail.splitlines()[0])


async def _limits(stage: Stage, session: SessionHandle) -> None:
    stage.title("Limits, and a session that outlives them")
    before = await session.run(COUNT)
    stage.code(MEMORY)
    memory = await session.run(MEMORY)
    _limit_row(stage, memory, "limit", "memory")
    stage.code(FOREVER)
    forever = await session.run(FOREVER, timeout=TIMEOUT)
    _limit_row(stage, forever, "timeout", f"time ({TIMEOUT:g} s for this run)")
    after = await session.run(COUNT)
    kept = after.value == before.value
    stage.row(kept, "the variables are still there", f"{COUNT} is {after.value:,}")


def _limit_row(stage: Stage, result: Result, expected: str, name: str) -> None:
    message = result.error.message.strip(" ()") if result.error is not None else "nothing happened"
    stage.row(result.status == expected, name, message)


async def _timings(stage: Stage, bell: Divingbell, ready: float) -> None:
    stage.title("Timings, measured just now")
    opening, first = await _measure_openings(bell)
    trips = await _measure_round_trips(bell)
    rows = (
        ("start, pandas and matplotlib loaded", f"{ready:.2f} s", "once"),
        ("open a session from the pool", _milliseconds(opening), f"median of {OPENINGS}"),
        ("… and its first pandas result", _milliseconds(first), f"median of {OPENINGS}"),
        ("a warm `1+1`, there and back", _milliseconds(trips), f"median of {ROUND_TRIPS}"),
    )
    for name, value, how in rows:
        stage.say(f"  {name:<38} {value:>9}   {how}")
    stage.say(f"  on {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}", "dim")


async def _measure_openings(bell: Divingbell) -> tuple[list[float], list[float]]:
    opening, first = [], []
    for _ in range(OPENINGS):
        await asyncio.sleep(REFILL)
        started = time.perf_counter()
        async with bell.session() as session:
            opening.append(time.perf_counter() - started)
            await session.run("import pandas as pd; pd.DataFrame({'a': [1, 2]}).a.sum()")
            first.append(time.perf_counter() - started)
    return opening, first


async def _measure_round_trips(bell: Divingbell) -> list[float]:
    trips = []
    async with bell.session() as session:
        for _ in range(ROUND_TRIPS):
            started = time.perf_counter()
            await session.run("1+1")
            trips.append(time.perf_counter() - started)
    return trips


def _milliseconds(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.2f} ms"
