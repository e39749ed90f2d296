"""The one table that a benchmark prints: what was measured, against what, and the target."""

import datetime
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HEADINGS = ("measure", "of", "median", "ratio", "target", "middle 80 %", "runs")


@dataclass(frozen=True, slots=True)
class Row:
    """One line. Texts are ready to print."""

    measure: str
    subject: str
    median: str = ""
    ratio: str = ""
    target: str = ""
    spread: str = ""
    runs: str = ""

    def cells(self) -> tuple[str, ...]:
        return (
            self.measure,
            self.subject,
            self.median,
            self.ratio,
            self.target,
            self.spread,
            self.runs,
        )


def heading() -> str:
    """Say on what machine, with what and when the figures were made."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return (
        f"{datetime.date.today().isoformat()} · {_processor()} · {os.cpu_count()} cores · "
        f"{memory:.0f} GB · Linux {platform.release()} · Python {platform.python_version()} · "
        f"load {os.getloadavg()[0]:.1f} at the end"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def render(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table that is aligned for the terminal too."""
    return aligned([HEADINGS, *(row.cells() for row in rows)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Return lines, the first of them the headings, as such a table."""
    columns = range(len(lines[0]))
    widths = [max(len(line[column]) for line in lines) for column in columns]
    rule = ["-" * width for width in widths]
    texts = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in (lines[0], rule, *lines[1:])
    ]
    return "\n".join(texts)


def seconds(value: float) -> str:
    """Return a time with a unit that suits it."""
    if value < 0.0995:
        return f"{value * 1000:.3g} ms"
    return f"{value * 1000:.0f} ms" if value < 10 else f"{value:.1f} s"


def middle(values: Iterable[float]) -> str:
    """Return the tenth and the ninetieth percentile of times."""
    ordered = sorted(values)
    if len(ordered) < 3:
        return ""
    last = len(ordered) - 1
    return f"{seconds(ordered[round(last * 0.1)])} – {seconds(ordered[round(last * 0.9)])}"


def times(measure: str, subject: str, values: Sequence[float], **more: str) -> Row:
    """Return a row for repeated times."""
    return Row(
        measure,
        subject,
        seconds(statistics.median(values)),
        spread=middle(values),
        runs=str(len(values)),
        **more,
    )


def at_least(reached: float, wanted: float) -> str:
    """Say whether a ratio that should be large is."""
    words = f"≥ {wanted:g}×: "
    if reached >= wanted:
        return words + "met"
    return words + f"NOT met, {wanted / reached:.2f}× too slow"


def at_most(reached: float, wanted: float, unit: str) -> str:
    """Say whether a figure that should be small is."""
    words = f"≤ {wanted:g}{unit}: "
    if reached <= wanted:
        return words + "met"
    return words + f"NOT met, {reached - wanted:.2f}{unit} too much"
