"""`divingbell stats`: the tokens that models read, and those that they were spared."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divingbell.errors import ConfigError
from divingbell.escapes import one_line
from divingbell.host.places import data_folder
from divingbell.journal.answer_totals import AnswerSums
from divingbell.journal.totals import FILE_NAME, KEPT_DAYS, Report, Sums, ToolTotal, report
from divingbell.surfaces.cli import exit_status

if TYPE_CHECKING:
    from rich.table import Table

    from divingbell.surfaces.cli.terminal.console import Console

DAYS = 30
TOP = 10
FEW = 30
"""Answers in an arm, below which means say little."""


def show(*, days: int = DAYS, as_json: bool = False, path: Path | None = None) -> int:
    """Print the totals of the last days; return the exit status.

    Raises:
        ConfigError: there are no such days, or the totals can't be read.
    """
    if not 1 <= days <= KEPT_DAYS:
        raise ConfigError(f"--days is a number from 1 to {KEPT_DAYS}, not {days}")
    found = report(path or data_folder() / FILE_NAME, days)
    if as_json:
        print(json.dumps(_as_json(found, days), indent=2))
        return exit_status.OK
    from divingbell.surfaces.cli.terminal.console import Console

    _print(Console(), found, days)
    return exit_status.OK


def _as_json(found: Report, days: int) -> dict[str, Any]:
    return {
        "days": days,
        "total": _sums(found.total),
        "by_day": {day: _sums(totals) for day, totals in found.days.items()},
        "by_user": {user: _sums(totals) for user, totals in found.users.items()},
        "servers": [asdict(server) for server in found.servers],
        "tools": [asdict(tool) for tool in found.tools],
        "older_executions": found.older,
        "refused_by_user": found.refused,
        "combinations": [asdict(one) for one in found.combinations],
        "serve_arms": {arm: asdict(sums) for arm, sums in found.serve_arms.items()},
        "answers": {model: asdict(sums) for model, sums in found.answers.items()},
        "arms": {arm: asdict(sums) for arm, sums in found.arms.items()},
    }


def _sums(totals: Sums) -> dict[str, Any]:
    return asdict(totals) | {
        "read": totals.read,
        "direct": totals.direct,
        "saved": totals.saved,
        "ratio": round(totals.ratio, 4),
    }


def _print(console: "Console", found: Report, days: int) -> None:
    if found.refused:
        console.print(f"{sum(found.refused.values()):,} executions were over a rate, and not run.")
    _print_answers(console, found)
    _print_arms(console, found)
    _print_serve_arms(console, found)
    if not found.total.executions:
        if found.answers or found.serve_arms:
            return
        console.print(
            f"No model has run code here in the last {days} days.\n"
            "Ask something with `divingbell chat`, or add `divingbell serve` to a client, with\n"
            "your MCP servers in its settings, and have its model run code. Then look here again.\n"
            "What other commands and programs run is not counted: no model reads it.",
            markup=False,
        )
        _print_older(console, found)
        return
    table = _table("day", "executions", "calls", "tokens read", "directly", "saved")
    for day, totals in found.days.items():
        table.add_row(day, *_cells(totals))
    table.add_section()
    table.add_row("together", *_cells(found.total), style="bold")
    console.print(table)
    if len(found.users) > 1:
        table = _table("user", "executions", "calls", "tokens read", "directly", "saved")
        for user, totals in found.users.items():
            table.add_row(_without_markup(user or "–"), *_cells(totals))
        console.print(table)
    _print_top(console, "server", found.servers)
    _print_top(console, "tool", found.tools)
    _print_combinations(console, found)
    if found.total.estimated:
        console.print(f"~ {found.total.estimated:,} executions were too long to be counted whole.")
    _print_older(console, found)


def _print_answers(console: "Console", found: Report) -> None:
    """Print what the models of agents have used, as their providers count it and as we do."""
    if not found.answers:
        return
    table = _table(
        "model", "answers", "requests", "tokens read", "cached", "we count", "written", "US $"
    )
    for model, sums in found.answers.items():
        table.add_row(
            _without_markup(model),
            f"{sums.answers:,}",
            f"{sums.turns:,}",
            f"{sums.input_tokens:,}",
            f"{sums.cached_tokens:,}",
            f"{sums.counted_tokens:,}",
            f"{sums.output_tokens:,}",
            f"{sums.cost:.4f}" if sums.priced else "–",
        )
    console.print(table)
    console.print("Of agents (chat, editors, HTTP): tokens and dollars as providers count them.")


def _print_arms(console: "Console", found: Report) -> None:
    """Print the arms of an experiment beside each other, as means of an answer."""
    if not found.arms:
        return
    table = _table(
        "arm", "users", "answers", "answered", "turns", "tokens read", "cached", "written", "US $"
    )
    for arm, sums in found.arms.items():
        table.add_row(_without_markup(arm), *_arm_cells(sums))
    console.print(table)
    console.print("Turns, tokens and dollars are means of an answer.")
    few = [arm for arm, sums in found.arms.items() if sums.answers < FEW]
    if few:
        words = f"{', '.join(few)}: fewer than {FEW} answers, so a difference may be chance."
        console.print(words, markup=False)


def _print_serve_arms(console: "Console", found: Report) -> None:
    """Print the arms of an experiment among the clients of `serve` beside each other."""
    if not found.serve_arms:
        return
    table = _table("arm", "users", "executions", "calls", "direct calls", "tokens read", "directly")
    for arm, sums in found.serve_arms.items():
        table.add_row(_without_markup(arm), *(f"{value:,}" for value in asdict(sums).values()))
    console.print(table)
    console.print(
        "Of direct calls tokens are estimated, and the definitions of tools are not counted.",
        markup=False,
    )


def _arm_cells(sums: AnswerSums) -> list[str]:
    mean = sums.per_answer
    return [
        f"{sums.users:,}",
        f"{sums.answers:,}",
        f"{mean(sums.answered):.0%}",
        f"{mean(sums.turns):.1f}",
        f"{mean(sums.input_tokens):,.0f}",
        f"{mean(sums.cached_tokens):,.0f}",
        f"{mean(sums.output_tokens):,.0f}",
        f"{sums.cost / sums.priced:.4f}" if sums.priced else "–",
    ]


def _print_older(console: "Console", found: Report) -> None:
    if found.older:
        console.print(
            f"{found.older:,} executions are left out: an earlier version counted them, with the\n"
            "definitions of all tools for each session, and for commands too.",
            markup=False,
        )


def _print_top(console: "Console", name: str, rows: Iterable[ToolTotal]) -> None:
    table = _table(name, "calls", "tokens spared the model")
    for row in list(rows)[:TOP]:
        # Names of tools are what servers say.
        table.add_row(_without_markup(row.name), f"{row.calls:,}", f"{row.tokens:,}")
    if table.row_count:
        console.print(table)


def _print_combinations(console: "Console", found: Report) -> None:
    table = _table("used together", "executions")
    for one in found.combinations[:TOP]:
        table.add_row(_without_markup(one.tools), f"{one.executions:,}")
    if table.row_count:
        console.print(table)


def _table(first: str, *others: str) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _cells(totals: Sums) -> list[str]:
    sign = "~ " if totals.estimated else ""
    return [
        f"{totals.executions:,}",
        f"{totals.calls:,}",
        f"{totals.read:,}",
        f"{sign}{totals.direct:,}",
        f"{totals.ratio:.1%}" if totals.direct else "–",
    ]


def _without_markup(name: str) -> Any:
    from rich.text import Text

    return Text(one_line(name))
