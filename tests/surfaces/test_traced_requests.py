"""Traced requests: each has a span, below that of its sender, with no word of the client's."""

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from divingbell.surfaces.traced_requests import TracedRequests

TRACE, SENDER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


async def _answered(status: int = 200, method: str = "POST", **headers: str) -> Any:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    current = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        current.append(trace.get_current_span().get_span_context().span_id)
        await send({"type": "http.response.start", "status": status, "headers": []})

    async def send(message: Any) -> None: ...

    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": "/secret", "headers": given}
    await TracedRequests(app, provider.get_tracer("test"))(scope, send, send)
    [span] = exporter.get_finished_spans()
    assert current == [span.context.span_id]
    return span


async def test_a_request_is_a_child_of_its_senders_span() -> None:
    span = await _answered(traceparent=f"00-{TRACE}-{SENDER}-01")
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == SENDER
    assert dict(span.attributes) == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
    }


@pytest.mark.parametrize("given", ["", "00-0-0-01", "x" * 100_000, f"00-{TRACE}-{SENDER}"])
async def test_a_context_that_is_none_begins_a_trace(given: str) -> None:
    assert (await _answered(traceparent=given)).parent is None


async def test_neither_path_nor_method_of_the_clients_own_is_told() -> None:
    span = await _answered(status=503, method="SECRET")
    assert "secret" not in span.to_json().lower() and not span.status.is_ok
