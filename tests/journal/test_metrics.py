"""Metrics: what is counted, in series whose number is bounded, and how they are written out."""

import asyncio
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from divingbell import ConfigError, Divingbell
from divingbell.journal import metrics as journal_metrics
from divingbell.journal.events import (
    AnswerEnded,
    ApprovalAnswered,
    CallDecided,
    CallEnded,
    CallRequested,
    CellEnded,
    CellRefused,
    CellStarted,
    ExecutionRefused,
    SessionOpened,
)
from divingbell.journal.metrics import MOST_KINDS, MOST_SERVERS, Metrics, Surroundings
from divingbell.journal.readings import Readings
from divingbell.journal.series import Counts
from divingbell.models import Ledger, Result, ToolCall, Usage
from divingbell.principal import Principal
from tests.gateway.galley import galley

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ANNA = Principal("anna", "c1", "http")
LEDGER = Ledger(code_tokens=10, output_tokens=20, direct_call_tokens=1030, calls=1)
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: bytes) -> Samples:
    """The samples of what was written out, by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((f"divingbell_{name}", frozenset(labels.items())))


async def counted(*events: Any, **about: Any) -> Samples:
    metrics = Metrics(Surroundings(**about))
    for event in events:
        metrics.take(event)
    return read(await metrics.render())


def cell(number: int = 1, code: str = "1 + 1", result: Result | None = None) -> list[Any]:
    """The beginning and the end of a cell of Anna's."""
    return [
        CellStarted(ANNA, "k", number, code, waited=0.2),
        CellEnded(ANNA, "k", number, code, result),
    ]


def call(name: str, outcome: Any = "ok", code: str = "", by: Any = "code") -> list[Any]:
    whose = (1, ANNA, "k", 1, by, "tool")
    ended = CallEnded(*whose, name, outcome, code, True, {}, b"", None, b"", 0.3)
    return [CallRequested(*whose, name), ended]


async def test_cells_are_counted_by_status_backend_and_arm() -> None:
    good = Result("ok", usage=Usage(wall_ms=20, cpu_ms=500), ledger=LEDGER)
    events = [*cell(1, "x" * 150, good), *cell(2, result=Result("timeout")), *cell(3)]
    arms = {"anna": "code"}
    found = await counted(*events, backend=lambda: "gvisor", arm_of=arms.get, price=3.0)
    for status in ("ok", "timeout", "cancelled"):
        labels = {"status": status, "backend": "gvisor", "arm": "code"}
        assert value(found, "executions_total", **labels) == 1
    assert value(found, "execution_seconds_bucket", le="0.025") == 2
    assert value(found, "queue_seconds_sum") == pytest.approx(0.6)
    assert value(found, "cpu_seconds_total") == 0.5
    assert value(found, "executions_running") == 0
    assert value(found, "code_characters_bucket", le="100.0") == 2
    assert value(found, "tokens_read_total", arm="code") == 30
    assert value(found, "tokens_direct_total", arm="code") == 1030
    assert value(found, "tokens_saved") == 1000
    assert value(found, "cost_saved_dollars") == pytest.approx(0.003)
    assert value(found, "uses_total", use="computing") == 2


async def test_tokens_that_no_model_reads_are_not_counted() -> None:
    program = Principal("anna", "c1", "library")
    result = Result("ok", ledger=LEDGER)
    found = await counted(CellEnded(program, "k", 1, "1", result))
    assert value(found, "tokens_saved") == 0 and value(found, "cost_saved_dollars") is None


async def test_calls_are_counted_by_server_and_outcome_and_texts_of_others_are_no_labels() -> None:
    hostile = 'x"} 1\ndivingbell_forged 1'
    events = [
        *call("shop.orders"),
        *call("shop.pay", "denied", "tool_denied"),
        *call(f"{hostile}.orders", "refused", "tool_unknown"),
        *call("host.mine", "failed", hostile),
    ]
    found = await counted(*events, servers=["shop"])
    calls = "tool_calls_total"
    assert value(found, calls, server="shop", outcome="ok") == 1
    assert value(found, calls, server="shop", outcome="denied") == 1
    assert value(found, calls, server="other", outcome="refused") == 1
    assert value(found, calls, server="host", outcome="failed") == 1
    assert value(found, "tool_call_seconds_bucket", le="0.5") == 4
    assert value(found, "errors_total", code="tool_denied") == 1
    assert value(found, "errors_total", code="other") == 1
    assert not [name for name, _ in found if "forged" in name]


async def test_denials_say_by_whom() -> None:
    asked = (1, "a.b", "anna", "k", 1)
    found = await counted(
        CallDecided(1, "a.b", "deny", 1, "no"),
        CallDecided(2, "a.b", "deny", 1, "no", flow=1),
        CallDecided(3, "a.b", "allow", None, ""),
        ApprovalAnswered(*asked, "no", ""),
        ApprovalAnswered(*asked, "nobody", ""),
        ApprovalAnswered(*asked, "yes", ""),
        ExecutionRefused(ANNA, "k", "cell", "too many", 1.0),
        CellRefused(ANNA, "k", 1, "import os", "no"),
    )
    denials = {
        dict(labels)["by"]: count
        for (name, labels), count in found.items()
        if name == "divingbell_denials_total"
    }
    assert denials == dict.fromkeys(("rule", "flow", "person", "nobody", "rate", "review"), 1)
    assert value(found, "errors_total", code="rate_exceeded") == 1


async def test_conversations_are_counted_once_for_each_way() -> None:
    other = Principal("bert", "c2", "http")
    direct = CallRequested(9, other, "k2", 1, "client", "tool", "shop.orders")
    found = await counted(*cell(1), *cell(2), *call("a.b"), direct, direct)
    ways = [value(found, "conversations_total", used=used) for used in ("any", "code", "direct")]
    assert ways == [2, 1, 1]


async def test_answers_of_agents_are_counted_by_arm() -> None:
    answer = AnswerEnded(ANNA, "k", "m", "code", "direct", "answered", 2, 100, 20, 5, 0.25)
    found = await counted(answer)
    assert value(found, "answers_total", arm="direct", answered="yes") == 1
    assert value(found, "answer_tokens_total", arm="direct", kind="output") == 20
    assert value(found, "answer_cost_dollars_total", arm="direct") == 0.25


async def test_what_is_read_off_the_sessions_is_told() -> None:
    async def state() -> Readings:
        return Readings(busy=2, idle=3, memory=7, pool=4, from_pool=5, made=6,
                        copies=1, copies_made=9, unrecorded=2, masked={"EMAIL": 10})  # fmt: skip

    found = await counted(SessionOpened(ANNA, "s", "k"), read=state)
    assert value(found, "sessions", state="busy") == 2
    assert value(found, "sessions", state="idle") == 3
    assert value(found, "sessions_opened_total") == 1
    assert value(found, "pool_taken_total", by="pool") == 5
    assert value(found, "values_masked_total", kind="EMAIL") == 10
    names = ("memory_bytes", "pool_sessions", "copies", "copies_made_total", "unrecorded_total")
    assert [value(found, name) for name in names] == [7, 4, 1, 9, 2]
    assert ("process_open_fds", frozenset()) in found


async def test_the_number_of_series_is_bounded() -> None:
    """Whatever users, tools, kinds and conversations there are: each of all labels, at most."""
    servers = [f"server-{number}" for number in range(500)]

    async def state() -> Readings:
        return Readings(masked={f"KIND_{number}": 1 for number in range(500)})

    metrics = Metrics(Surroundings(servers=servers, read=state))
    for number, server in enumerate(servers):
        whose = Principal(f"user-{number}", f"c{number}", "http")
        ledger = Ledger(direct_call_tokens=number)
        metrics.take(CellEnded(whose, "k", 1, "1", Result("ok", ledger=ledger)))
        for event in call(f"{server}.tool-{number}", "failed", f"code-{number}"):
            metrics.take(event)
    found = read(await metrics.render())
    of_servers = [labels for name, labels in found if name == "divingbell_tool_calls_total"]
    assert len(of_servers) == MOST_SERVERS + 1
    kinds = [labels for name, labels in found if name == "divingbell_values_masked_total"]
    assert len(kinds) == MOST_KINDS + 1
    assert value(found, "tool_calls_total", server="other", outcome="failed") == 460
    assert len(found) < 300


async def test_conversations_that_are_remembered_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_metrics, "MOST_CONVERSATIONS", 3)
    metrics = Metrics()
    for number in range(10):
        whose = Principal("anna", f"c{number}")
        metrics.take(CellStarted(whose, "k", 1, "1"))
    assert len(metrics._conversations) == 3


async def test_they_are_written_out_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def written(registry: object) -> bytes:
        threads.append(threading.current_thread())
        return b""

    monkeypatch.setattr(journal_metrics, "generate_latest", written)
    await Metrics().render()
    assert threads and threads[0] is not threading.main_thread()


async def test_the_lag_of_the_loop_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_metrics, "LOOK_EVERY", 0.001)
    metrics = Metrics()
    metrics.start()
    async with asyncio.timeout(30):
        while not value(read(await metrics.render()), "loop_lag_seconds_count"):
            pass
    await metrics.close()


def test_the_page_lists_every_series() -> None:
    """With its type and its labels."""
    metrics = Metrics(Surroundings(price=1.0))
    made = {name.removeprefix("divingbell_"): labels for name, labels in _series(metrics).items()}
    rows = re.findall(r"^\| `divingbell_(\w+)` \| (\w+) \| ([^|]*) \|", PAGE.read_text(), re.M)
    told = {name: (kind, frozenset(re.findall(r"`(\w+)`", of))) for name, kind, of in rows}
    assert told == made


def _series(metrics: Metrics) -> Mapping[str, tuple[str, frozenset[str]]]:
    found = {}
    for family in metrics._registry.collect():
        if family.name.startswith("process_"):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found[name] = (family.type, frozenset(_labels(metrics, family)))
    return found


def _labels(metrics: Metrics, family: Any) -> tuple[str, ...]:
    for series in metrics._registry._collector_to_names:
        if getattr(series, "_name", None) == family.name:
            return series.labels if isinstance(series, Counts) else ()
    read = {"sessions": ("state",), "pool_taken": ("by",), "values_masked": ("kind",)}
    return read.get(family.name.removeprefix("divingbell_"), ())


# With a real Divingbell


async def test_a_divingbell_counts_what_its_users_do() -> None:
    code = (
        "from servers.galley import add\n"
        "print([add(n, 1) for n in range(3)], 'anna.larsen@example.com')"
    )
    async with galley(metrics="on", privacy="personal") as (bell, session):
        assert bell.metrics is not None
        first = await session.run(code)
        assert first.status == "ok", first.error
        await session.run("1 / 0")
        bell.metrics.queue_length = lambda: 3
        found = read(await bell.metrics.render())
    executions = {"backend": "local", "arm": "none"}
    assert value(found, "executions_total", status="ok", **executions) == 1
    assert value(found, "executions_total", status="error", **executions) == 1
    assert value(found, "tool_calls_total", server="galley", outcome="ok") == 3
    assert value(found, "values_masked_total", kind="EMAIL") == 1
    assert value(found, "sessions", state="idle") == 1
    assert value(found, "pool_taken_total", by="made") == 1
    assert (value(found, "memory_bytes") or 0) > 0 and (value(found, "cpu_seconds_total") or 0) > 0
    assert value(found, "queue_length") == 3
    labels = {label for _, each in found for label in each}
    assert not [text for _, text in labels if "ann" in text]


async def test_each_divingbell_has_counts_of_its_own() -> None:
    one, other = Metrics(), Metrics()
    one.take(SessionOpened(ANNA, "s", "k"))
    assert value(read(await one.render()), "sessions_opened_total") == 1
    assert value(read(await other.render()), "sessions_opened_total") == 0


def test_nothing_is_counted_unless_it_is_wanted() -> None:
    assert Divingbell().metrics is None
    with pytest.raises(ConfigError, match="metrics"):
        Divingbell(metrics="some")  # type: ignore[arg-type]


def test_calls_of_a_cell_decide_its_use() -> None:
    metrics = Metrics()
    result = Result("ok", calls=(ToolCall("a.b", "{}", "ok"), ToolCall("a.c", "{}", "ok")))
    metrics.take(CellEnded(ANNA, "k", 1, "", result))
    assert metrics._child(metrics._uses, "workflow")._value.get() == 1
