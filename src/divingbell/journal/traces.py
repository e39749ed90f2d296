"""Traces: a span for each cell and each call, of what the journal tells.

The journal tells of a beginning and of its end in the task that does the work. So a span is made
the current one between the two: that of a cell is a child of its request's, that of a call a child
of its cell's, and what a server does with the call is a child of that, as the MCP SDK passes the
context on. Code, output, arguments, users and names that others have chosen are in none of them.
"""

from collections.abc import Callable, Hashable
from contextvars import Token
from typing import Any

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from divingbell.journal.events import (
    CallEnded,
    CallRequested,
    CellEnded,
    CellStarted,
    JournalEvent,
)

NAME = "divingbell"
PREFIX = "divingbell."


class Traces:
    """A subscriber that makes spans, by the tracer of this process unless another is given."""

    def __init__(self, tracer: Tracer | None = None) -> None:
        self._tracer = tracer or trace.get_tracer(NAME)
        self._open: dict[Hashable, tuple[Span, Token[Context]]] = {}
        """Spans that have not ended, by their cell or their call."""
        self._takers: dict[type, Callable[[Any], None]] = {
            CellStarted: self._cell_started,
            CellEnded: self._cell_ended,
            CallRequested: self._call_requested,
            CallEnded: self._call_ended,
        }

    def take(self, event: JournalEvent) -> None:
        """Begin or end a span; see the journal."""
        taker = self._takers.get(type(event))
        if taker is not None:
            taker(event)

    def _cell_started(self, event: CellStarted) -> None:
        self._begin((event.key, event.cell), "cell", cell=event.cell, characters=len(event.code))

    def _cell_ended(self, event: CellEnded) -> None:
        status = "cancelled" if event.result is None else event.result.status
        self._end((event.key, event.cell), status, failed=status != "ok")

    def _call_requested(self, event: CallRequested) -> None:
        self._begin(event.call, "call", kind=event.kind, by=event.by)

    def _call_ended(self, event: CallEnded) -> None:
        self._end(event.call, event.outcome, failed=event.outcome != "ok")

    def _begin(self, key: Hashable, what: str, **attributes: str | int) -> None:
        named = {f"{PREFIX}{name}": value for name, value in attributes.items()}
        span = self._tracer.start_span(f"{PREFIX}{what}", kind=SpanKind.INTERNAL, attributes=named)
        self._open[key] = (span, context.attach(trace.set_span_in_context(span)))

    def _end(self, key: Hashable, status: str, *, failed: bool) -> None:
        found = self._open.pop(key, None)
        if found is None:
            return  # it began before anybody looked
        span, token = found
        context.detach(token)
        span.set_attribute(f"{PREFIX}status", status)
        if failed:
            span.set_status(StatusCode.ERROR)
        span.end()
