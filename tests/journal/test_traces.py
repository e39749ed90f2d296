"""Traces: requests, cells, calls and what servers do with them hang together."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from divingbell.journal.events import CallEnded, CallRequested, CellEnded, CellStarted
from divingbell.journal.traces import Traces
from divingbell.models import Result
from divingbell.principal import Principal

SERVERS = Path(__file__).parents[1] / "servers"
ANNA = Principal("anna@example.com", "c", "http")
PATIENCE = 120.0


def _hex(number: str) -> str:
    return number.removeprefix("0x")


def test_request_cell_call_and_the_spans_of_a_server_are_one_trace() -> None:
    program = [sys.executable, str(SERVERS / "tracing_program.py"), str(SERVERS / "traced.py")]
    ran = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    spans: dict[str, Any] = {span["context"]["span_id"]: span for span in found["spans"]}
    for name, (trace_id, parent) in zip("ab", found["places"], strict=True):
        names = []
        at: str | None = f"0x{parent}"  # the server's own span is a child of this one
        while at is not None:
            assert _hex(spans[at]["context"]["trace_id"]) == trace_id
            names.append(spans[at]["name"])
            at = spans[at]["parent_id"]
        # The first is the SDK's, which passes the context on.
        assert names[1:] == ["divingbell.call", "divingbell.cell", f"request {name}"]
    assert not ran.stderr  # of contexts that were left in another one than they were entered in
    told = json.dumps([span for span in found["spans"] if span["name"].startswith("divingbell.")])
    for words in ("anna", "bert", "secret words", "import", "place"):
        assert words not in told


def _made(*events: Any) -> list[Any]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = Traces(provider.get_tracer("test"))
    for event in events:
        traces.take(event)
    assert not traces._open
    return list(exporter.get_finished_spans())


def test_how_it_ended_is_told_and_nothing_that_others_wrote() -> None:
    whose = (7, ANNA, "anna@example.com#1", 1, "code", "tool", "shop.buy")
    [call, cell] = _made(
        CellStarted(ANNA, "anna@example.com#1", 1, "print('words')"),
        CallRequested(*whose),
        CallEnded(*whose, "denied", "tool_denied", False, {"a": "b"}, b"", None, b"", 0.1),
        CellEnded(ANNA, "anna@example.com#1", 1, "print('words')", Result("timeout")),
    )
    assert call.parent.span_id == cell.context.span_id
    assert dict(call.attributes) == {
        "divingbell.kind": "tool",
        "divingbell.by": "code",
        "divingbell.status": "denied",
    }
    assert dict(cell.attributes) == {
        "divingbell.cell": 1,
        "divingbell.characters": 14,
        "divingbell.status": "timeout",
    }
    assert not call.status.is_ok and not cell.status.is_ok
    assert not trace.get_current_span().get_span_context().is_valid  # it is left


def test_what_began_before_anybody_looked_makes_no_span() -> None:
    assert _made(CellEnded(ANNA, "k", 1, "1", None)) == []
