"""Traced requests: a span for each HTTP request, below that of whoever sent it.

A plain ASGI application around another. Neither the path nor anything else that a client has
written is in the span, but for the context of its own trace.
"""

from collections.abc import Callable

from opentelemetry import context, trace
from opentelemetry.propagate import extract
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAME = "divingbell"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CARRIED = (b"traceparent", b"tracestate")
LONGEST = 512
"""Bytes of such a header that are read; the standard promises no more to be passed on."""


class TracedRequests:
    """Has each request answered within a span of its own."""

    def __init__(self, app: ASGIApp, tracer: Tracer | None = None) -> None:
        self._app = app
        self._tracer = tracer or trace.get_tracer(NAME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        method = scope.get("method", "websocket")
        method = method if method in METHODS or method == "websocket" else "_OTHER"
        with self._tracer.start_as_current_span(
            f"divingbell.request {method}",
            context=extract(_carried(scope), context.get_current()),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method},
            record_exception=False,  # its words may be a client's
        ) as span:
            await self._app(scope, receive, _noting(send, span))


def _carried(scope: Scope) -> dict[str, str]:
    return {
        name.decode(): value.decode("latin-1")
        for name, value in scope["headers"]
        if name in _CARRIED and len(value) <= LONGEST
    }


def _noting(send: Send, span: Span) -> Send:
    """Return what notes the status of an answer that passes."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            status = message["status"]
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_status(StatusCode.ERROR)
        await send(message)

    return sent


def exported() -> Callable[[], None]:
    """Send the spans of this process to a collector, as the variables OTEL_… say; returns what ends
    it, and sends those that are left.

    Raises:
        ImportError: the extra `traces` is not installed.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # What the variables say of the resource comes before what is said here.
    resource = Resource({SERVICE_NAME: NAME}).merge(Resource.create())
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown
