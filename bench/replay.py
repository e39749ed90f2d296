"""Tasks of a shop done by direct calls and by code, in real conversations: `./dev bench replay`.

The 115 test tasks of tau-bench (retail) are replayed by the agent that ships, over a real MCP
server with the benchmark's data. A script stands in the place of the model and knows which calls
do a task; it makes each no sooner than its arguments are known, in every arm the same calls, and
the shop must be in the same state in the end. Counted are the tokens of the requests that were
made. --model asks a real model instead.
"""

import argparse
import asyncio
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean

import apart
import heavy_work
import lists
import live
import retail
import table
from conversing import Cost, converse
from hosted import hosted
from replaying import YES, CodeScript, DirectScript, Script
from retail_bell import connected, lean, opened
from retail_tasks import Step, Task, single, tasks
from runner import add_outputs

from divingbell import Divingbell

OTHERS = (5, 20, 55)
WRITING = frozenset(
    {"cancel_pending_order", "exchange_delivered_order_items", "return_delivered_order_items"}
)
"""The three tools that do the most tasks by themselves."""
LOOKING_UP = frozenset({"find_user_id_by_name_zip", "get_user_details", "get_order_details"})
"""Those that do the most of the tasks that read."""
SEQUENTIAL, PARALLEL, CODE = "sequential", "parallel", "code"
DIRECT = (SEQUENTIAL, PARALLEL)
WAYS = (*DIRECT, CODE)
ALL, UNSEEN = "code, prints everything", "code, fields unknown before one record was read"
BY_CALLS = ((0, 2), (3, 5), (6, 9), (10, 99))
FEWER_SEQUENTIAL, FEWER_PARALLEL = 60, 45
HEADINGS = (
    "tasks",
    "way",
    "turns",
    "input tokens",
    "than sequential",
    "than parallel",
    "with cache",
    "than sequential",
    "than parallel",
    "peak",
    "tasks that lose",
    "aim",
)
PARTS = ("alone", "policy", "others", "few", "heavy")
Costs = dict[str, list[Cost]]
"""By the way of working, in the order of the tasks."""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one way of working, for one set of tasks: means of a task."""

    tasks: str
    way: str
    turns: float
    tokens: float
    with_cache: float
    peak: float
    beside: dict[str, tuple[float, float]]
    """Per cent fewer than another way, without and with cache."""
    losses: str = ""
    """The tasks in which it read more than by parallel calls, of all."""
    aim: str = ""

    def cells(self) -> tuple[str, ...]:
        fewer = [self.beside.get(way) for way in DIRECT]
        return (
            self.tasks,
            self.way,
            f"{self.turns:.1f}",
            f"{self.tokens:,.0f}",
            *("" if each is None else _percent(each[0]) for each in fewer),
            f"{self.with_cache:,.0f}",
            *("" if each is None else _percent(each[1]) for each in fewer),
            f"{self.peak:,.0f}",
            self.losses,
            self.aim,
        )


def _percent(fewer: float) -> str:
    if fewer < -0.5:
        return f"+{-fewer:.0f} %: more"
    return f"−{abs(fewer):.0f} %" if fewer < 99 else f"−{fewer:.2f} %"


def rows_of(name: str, costs: Costs) -> list[Row]:
    """Return a row for each way of working."""
    found = []
    for way, each in costs.items():
        others = DIRECT[: DIRECT.index(way)] if way in DIRECT else DIRECT
        beside = {other: _fewer(each, costs[other]) for other in others}
        read, cached = mean(cost.read for cost in each), mean(cost.with_cache for cost in each)
        turns, peak = mean(cost.turns for cost in each), mean(cost.peak for cost in each)
        losses = "" if PARALLEL not in beside else _losses(each, costs[PARALLEL])
        found.append(Row(name, way, turns, read, cached, peak, beside, losses))
    return found


def _losses(ours: Sequence[Cost], theirs: Sequence[Cost]) -> str:
    lost = sum(one.read > other.read for one, other in zip(ours, theirs, strict=True))
    return f"{lost} of {len(ours)}"


def _fewer(ours: Sequence[Cost], theirs: Sequence[Cost]) -> tuple[float, float]:
    """Return the per cent of tokens that are spared, of all tasks together."""

    def spared(tokens: Callable[[Cost], float]) -> float:
        return 100 * (1 - sum(map(tokens, ours)) / sum(map(tokens, theirs)))

    return spared(lambda cost: cost.read), spared(lambda cost: cost.with_cache)


def script_of(way: str, task: Task, shop: retail.Shop, searches: bool = False) -> Script:
    """Return what does a task in this way."""

    def made() -> list[tuple[str, retail.Record]]:
        return shop.calls

    if way in DIRECT:
        return DirectScript(task, made, at_once=way == PARALLEL)
    return CodeScript(task, made, prints_all=way == ALL, chains=way != UNSEEN, searches=searches)


async def replay(
    bell: Divingbell, shop: retail.Shop, script: Script, with_policy: bool = False
) -> Cost:
    """Have one task done, and make sure that it was.

    Raises:
        RuntimeError: the shop is not as it should be, or was asked for something else.
    """
    task = script.task
    shop.reset()
    first = live.opening(task) if with_policy else task.words
    words = (first, YES) if task.writes else (first,)
    mode = "code" if isinstance(script, CodeScript) else "direct"
    cost = await converse(bell, script, mode, words)
    if shop.state() != task.state:
        raise RuntimeError(f"task {task.number}: the shop is not as it should be in the end")
    if Counter(Step(*call) for call in shop.calls) != Counter(task.steps):
        raise RuntimeError(f"task {task.number}: other calls were made than the task lists")
    return cost


async def costs_of(
    bell: Divingbell,
    some: Sequence[Task],
    ways: Iterable[str],
    others: int = 0,
    names: Collection[str] | None = None,
    with_policy: bool = False,
) -> Costs:
    """Have tasks done in each of the ways; `names` are the tools of the shop that are there."""
    shop = retail.Shop()
    costs: Costs = {way: [] for way in ways}
    async with opened(bell, shop, others, names):
        for task in some:
            for way, found in costs.items():
                script = script_of(way, task, shop, bool(others))
                found.append(await replay(bell, shop, script, with_policy))
    return costs


def spread(most: int, known: Sequence[Task] = ()) -> list[Task]:
    """Return so many tasks, evenly from those that are given, or from all."""
    known = known or tasks()
    step = max(len(known) / most, 1)
    return [known[int(number * step)] for number in range(min(most, len(known)))]


# The parts


async def alone(bell: Divingbell, most: int) -> list[Row]:
    """The shop's sixteen tools, and no others."""
    some = spread(most)
    costs = await costs_of(bell, some, (*WAYS, ALL, UNSEEN))

    def part(name: str, condition: Callable[[Task], bool], ways: Sequence[str]) -> list[Row]:
        places = [place for place, task in enumerate(some) if condition(task)]
        if not places:
            return []
        chosen = {way: [costs[way][place] for place in places] for way in ways}
        return rows_of(f"{name}: {len(places)}", chosen)

    found = part("that read", lambda task: not task.only_writes, tuple(costs))
    found += part("that list writes only", lambda task: task.only_writes, WAYS)
    found += [_with_aim(row, costs) for row in part("all", lambda task: True, tuple(costs))]
    for least, last in BY_CALLS:
        name = f"{least} to {last} calls" if last < 99 else f"{least} calls and more"
        found += part(name, lambda task: least <= task.calls <= last, WAYS)  # noqa: B023
    return found


def _with_aim(row: Row, costs: Costs) -> Row:
    if row.way != CODE:
        return row
    sequential, parallel = row.beside[SEQUENTIAL][0], row.beside[PARALLEL][0]
    more = row.turns - mean(cost.turns for cost in costs[PARALLEL])
    aims = (
        (f"−{FEWER_SEQUENTIAL} %", sequential >= FEWER_SEQUENTIAL),
        (f"−{FEWER_PARALLEL} %", parallel >= FEWER_PARALLEL),
        ("turns of parallel + 1", more <= 1),
    )
    return dataclasses.replace(row, aim="; ".join(_judged(*aim) for aim in aims))


def _judged(aim: str, is_met: bool) -> str:
    return f"{aim}: {'met' if is_met else 'NOT met'}"


async def policy(bell: Divingbell, most: int) -> list[Row]:
    """The shop alone, with 1,200 tokens of its policy before the person's words."""
    some = spread(most)
    costs = await costs_of(bell, some, WAYS, with_policy=True)
    return rows_of(f"all, with the shop's policy: {len(some)}", costs)


async def among_others(bell: Divingbell, most: int, numbers: Sequence[int]) -> list[Row]:
    """The shop beside other servers, whose definitions a model reads that calls directly."""
    found = []
    for number in numbers:
        some = spread(most)
        costs = await costs_of(bell, some, WAYS, number)
        there = min(number, len(lists.tool_lists()))
        found += rows_of(f"beside {there} other servers: {len(some)}", costs)
    return found


async def few_tools(bell: Divingbell, most: int) -> list[Row]:
    """Servers with three tools and fewer, and what can be done with no others."""
    order = single("get_order_details", "What is the status of order {order_id}?")
    sums = single("calculate", "What is {expression}?")
    found = []
    for name, tools, some in (
        ("three tools that write", WRITING, tasks()),
        ("three tools that look up", LOOKING_UP, tasks()),
        ("three tools, one lookup", LOOKING_UP, order),
        ("one tool, one short answer", frozenset({"calculate"}), sums),
    ):
        chosen = [task for task in some if task.calls and {s.name for s in task.steps} <= tools]
        costs = await costs_of(bell, chosen[:most], WAYS, names=tools)
        found += rows_of(f"{name}: {len(chosen[:most])}", costs)
    return found


async def heavy(bell: Divingbell) -> list[Row]:
    """Work with much to read or to wait for."""
    found = []
    for work in heavy_work.all_work():
        costs: Costs = {}
        with hosted(work.servers) as entries:
            async with connected(bell, entries):
                for way, script in work.scripts.items():
                    work.reset()
                    mode = "code" if way == CODE else "direct"
                    cost = await converse(bell, script(), mode, [work.question])
                    if cost.answer != work.answer():
                        raise RuntimeError(f"{work.name}, {way}: {cost.answer}")
                    costs[way] = [cost]
        rows = rows_of(work.name, costs)
        if work.aim is not None:
            fewer = rows[-1].beside[PARALLEL][0]
            aim = _judged(f"−{work.aim} % than parallel", fewer >= work.aim)
            rows[-1] = dataclasses.replace(rows[-1], aim=aim)
        found += rows
    return found


async def measure(chosen: argparse.Namespace) -> list[Row]:
    """Return the rows of the parts that were chosen."""
    parts = {
        "alone": lambda bell: alone(bell, chosen.tasks),
        "policy": lambda bell: policy(bell, chosen.beside),
        "others": lambda bell: among_others(bell, chosen.among, chosen.others),
        "few": lambda bell: few_tools(bell, chosen.beside),
        "heavy": heavy,
    }
    rows: list[Row] = []
    async with lean() as bell:
        for name in chosen.only or parts:
            print(f"· replaying {name}", file=sys.stderr, flush=True)
            rows += await parts[name](bell)
    return rows


def main() -> None:
    chosen = _arguments()
    with apart.home():
        if chosen.model:
            # Where nothing is to be changed, the shop is as it should be whatever is done.
            some = spread(chosen.tasks, [task for task in tasks() if task.writes])
            found = asyncio.run(live.measure(chosen, some))
            print(f"{table.heading()} · {chosen.model}", found, sep="\n\n")
            return
        rows = asyncio.run(measure(chosen))
    text = f"{table.heading()}\n\n{table.aligned([HEADINGS, *(row.cells() for row in rows)])}\n"
    print(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text, encoding="utf-8")
    if chosen.json is not None:
        plain = {"heading": table.heading(), "rows": [dataclasses.asdict(row) for row in rows]}
        chosen.json.write_text(json.dumps(plain, indent=2, ensure_ascii=False), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench replay", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few tasks, 5 other servers")
    parser.add_argument("--only", action="append", choices=PARTS, help="may be repeated")
    parser.add_argument("--tasks", type=int, metavar="N", help="of the 115 tasks")
    parser.add_argument("--among", type=int, metavar="N", help="of them, beside other servers")
    live.add_options(parser)
    add_outputs(parser)
    chosen = parser.parse_args()
    chosen.others = OTHERS[:1] if chosen.quick else OTHERS
    chosen.tasks = chosen.tasks or (3 if chosen.quick else 115)
    chosen.beside = 1 if chosen.quick else chosen.tasks
    chosen.among = chosen.among or (1 if chosen.quick else 23)
    return chosen


if __name__ == "__main__":
    main()
