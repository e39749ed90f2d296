"""Writes deploy/grafana/divingbell.json: the dashboard, for Grafana 11.6. `./dev generate`.

A test compares the file with what this makes, and has every query of it answered by a Prometheus
that has read a real run.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef

TARGET = Path(__file__).parents[1] / "deploy" / "grafana" / "divingbell.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
PART = "$__rate_interval"
DAY = "1d"
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
HEIGHT, WIDTH, SMALL = 8, 8, 4


@dataclass(frozen=True)
class Chart:
    """One panel: its queries by what each is called."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    is_figure: bool = False
    """Whether the last value is shown as a figure, and no curve."""


def rate(series: str, *by: str) -> str:
    """The rate of a counter, by these labels."""
    return f"sum by ({', '.join(by)}) (rate(divingbell_{series}[{PART}]))"


def quantiles(series: str) -> dict[str, str]:
    """Three quantiles of a histogram."""
    return {
        name: f"histogram_quantile({each}, {rate(f'{series}_bucket', 'le')})"
        for name, each in QUANTILES.items()
    }


def increase(series: str) -> str:
    """What a counter has grown by in a day."""
    return f"sum(increase(divingbell_{series}[{DAY}]))"


def conversations(used: str) -> str:
    """The conversations of a day that have used this."""
    return increase(f'conversations_total{{used="{used}"}}')


SAVED = f"{increase('tokens_direct_total')} - {increase('tokens_read_total')}"
ROWS: dict[str, Sequence[Chart]] = {
    "Tokens": (
        Chart("Saved in a day", {"saved": SAVED}, is_figure=True),
        Chart(
            "Saved, of what it would have been",
            {"saved": f"({SAVED}) / {increase('tokens_direct_total')}"},
            "percentunit",
            is_figure=True,
        ),
        Chart("Cost saved", {"saved": "sum(divingbell_cost_saved_dollars)"}, "currencyUSD", True),
        Chart("Saved since the start", {"saved": "sum(divingbell_tokens_saved)"}, is_figure=True),
        Chart(
            "Tokens a second",
            {
                "read, {{arm}}": rate("tokens_read_total", "arm"),
                "directly, {{arm}}": rate("tokens_direct_total", "arm"),
            },
        ),
        Chart(
            "Tokens of agents a second",
            {"{{kind}}, {{arm}}": rate("answer_tokens_total", "kind", "arm")},
        ),
        Chart(
            "Cost of agents a second",
            {"{{arm}}": rate("answer_cost_dollars_total", "arm")},
            "currencyUSD",
        ),
    ),
    "Performance": (
        Chart("Time of cells", quantiles("execution_seconds"), "s"),
        Chart("Time in the queue of a session", quantiles("queue_seconds"), "s"),
        Chart("Time of tool calls", quantiles("tool_call_seconds"), "s"),
        Chart("Lag of the loop", quantiles("loop_lag_seconds"), "s"),
        Chart(
            "Processors",
            {
                "cells": rate("cpu_seconds_total"),
                "host": f"rate(process_cpu_seconds_total[{PART}])",
            },
        ),
        Chart(
            "Memory",
            {
                "sessions": "sum(divingbell_memory_bytes)",
                "host": "sum(process_resident_memory_bytes)",
            },
            "bytes",
        ),
        Chart(
            "Executions now",
            {
                "running": "sum(divingbell_executions_running)",
                "waiting": "sum(divingbell_queue_length)",
            },
        ),
        Chart(
            "Sessions now",
            {
                "{{state}}": "sum by (state) (divingbell_sessions)",
                "in the pool": "sum(divingbell_pool_sessions)",
                "copies": "sum(divingbell_copies)",
            },
        ),
        Chart(
            "Sessions opened a second",
            {
                "all": rate("sessions_opened_total"),
                "{{by}}": rate("pool_taken_total", "by"),
                "copies made": rate("copies_made_total"),
            },
        ),
        Chart(
            "Open files",
            {"open": "sum(process_open_fds)", "most": "sum(process_max_fds)"},
        ),
    ),
    "Usage": (
        Chart(
            "Executions a second",
            {"{{status}}, {{backend}}": rate("executions_total", "status", "backend")},
        ),
        Chart("Executions a second, by arm", {"{{arm}}": rate("executions_total", "arm")}),
        Chart(
            "Conversations that use code",
            {"share": f"{conversations('code')} / {conversations('any')}"},
            "percentunit",
        ),
        Chart("Uses a second", {"{{use}}": rate("uses_total", "use")}),
        Chart("Length of code", quantiles("code_characters")),
        Chart(
            "Tool calls a second",
            {"{{server}}, {{outcome}}": rate("tool_calls_total", "server", "outcome")},
        ),
        Chart("Values hidden a second", {"{{kind}}": rate("values_masked_total", "kind")}),
        Chart("Denials a second", {"{{by}}": rate("denials_total", "by")}),
        Chart(
            "Errors a second",
            {
                "{{code}}": rate("errors_total", "code"),
                "not recorded": rate("unrecorded_total"),
            },
        ),
        Chart(
            "Answers of agents a second",
            {"{{arm}}, answered: {{answered}}": rate("answers_total", "arm", "answered")},
        ),
    ),
}


def _panel(number: int, chart: Chart) -> Any:
    made: Any = stat.Panel() if chart.is_figure else timeseries.Panel()
    made.id(number).title(chart.title).unit(chart.unit).datasource(SOURCE)
    made.height(SMALL if chart.is_figure else HEIGHT).span(6 if chart.is_figure else WIDTH)
    for letter, (name, query) in zip("ABCDEF", chart.queries.items(), strict=False):
        asked = prometheus.Dataquery().expr(query).legend_format(name).ref_id(letter)
        made.with_target(asked.datasource(SOURCE))
    return made


def text() -> str:
    """Return the dashboard as JSON."""
    made = (
        dashboard.Dashboard("Divingbell")
        .uid("divingbell")
        .tags(["divingbell"])
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("source").label("Source").type("prometheus"))
    )
    numbers = itertools.count(1)
    for title, charts in ROWS.items():
        made.with_row(dashboard.Row(title).id(next(numbers)))
        for chart in charts:
            made.with_panel(_panel(next(numbers), chart))
    return json.dumps(json.loads(JSONEncoder(sort_keys=True).encode(made.build())), indent=1) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
