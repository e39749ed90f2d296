"""A server that makes spans of its own, and tells where in a trace a call has reached it."""

from mcp.server import MCPServer
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

trace.set_tracer_provider(TracerProvider())
server = MCPServer("traced")


@server.tool()
def place() -> list[str]:
    """Return the trace of the span around this call, and its parent, as hexadecimal numbers."""
    span = trace.get_current_span()
    assert isinstance(span, ReadableSpan) and span.parent is not None
    return [f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}"]


server.run()
