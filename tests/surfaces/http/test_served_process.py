"""`divingbell serve --http` as a process of its own: arms of an experiment, and its traces."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.surfaces.http.serving import ANNE, BERT
from tests.surfaces.mcp.conftest import text_of
from tests.surfaces.mcp.serving import fixture, serving, settings
from tests.waiting import PATIENCE, until

TOKENS = {"DIVINGBELL_TOKENS": f"anne {ANNE}, bert {BERT}"}
TRACE, SENDER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextlib.asynccontextmanager
async def _client(url: str, token: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as inner,
        Client(streamable_http_client(url, http_client=inner)) as client,
    ):
        yield client


async def _names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("how", ["mode", "experiment"])
async def test_a_user_in_the_arm_direct_has_the_tools_themselves_through_the_same_door(
    tmp_path: Path, how: str
) -> None:
    mode = "direct" if how == "mode" else "code"
    path = settings(tmp_path, {"shop": fixture("workshop")}, mode)
    more = '\n[[policy.rules]]\ntools = ["shop.echo"]\nwhen = {text = "loud"}\naction = "deny"\n'
    if how == "experiment":
        more += '[experiment.users]\ndirect = ["anne"]\ncode = ["bert"]\n'
    path.write_text(path.read_text() + more)
    async with serving("--config", str(path), environment=TOKENS) as served:
        async with _client(served.url, ANNE) as anne:
            found = await _names(anne)
            assert "echo" in found and "execute_python" not in found
            assert text_of(await anne.call_tool("echo", {"text": "hi"})) == "hi"
            denied = await anne.call_tool("echo", {"text": "loud"})
            assert denied.is_error and "denied" in text_of(denied)
        async with _client(served.url, BERT) as bert:
            has_code = "execute_python" in await _names(bert)
            assert has_code == (how == "experiment")


class Collector(ThreadingHTTPServer):
    """Takes spans as a collector of OpenTelemetry does."""

    def __init__(self) -> None:
        self.spans: dict[bytes, Any] = {}
        super().__init__(("127.0.0.1", 0), _Taking)


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = ExportTraceServiceRequest.FromString(body)
        for resource in asked.resource_spans:
            for scope in resource.scope_spans:
                self.server.spans |= {span.span_id: span for span in scope.spans}
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.05,))
        thread.start()
        yield collector
        collector.shutdown()
        thread.join()


async def test_a_request_its_cell_its_call_and_the_servers_span_are_one_trace(
    tmp_path: Path, collector: Collector
) -> None:
    path = settings(tmp_path, {"traced": fixture("traced")})
    path.write_text('traces = "on"\n' + path.read_text())
    to_it = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_address[1]}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    code = "from servers.traced import place\nplace()"
    async with (
        serving("--config", str(path), environment=TOKENS | to_it) as served,
        httpx2.AsyncClient(base_url=served.url.removesuffix("/mcp"), timeout=PATIENCE) as client,
    ):

        async def ask(token: str, **more: str) -> list[str]:
            headers = {"Authorization": f"Bearer {token}", **more}
            answer = await client.post("/api/v1/execute", json={"code": code}, headers=headers)
            found: list[str] = answer.json()["value"]
            return found

        # At the same time: spans of one user's request are in no trace of another's.
        (trace, parent), (other, _) = await asyncio.gather(
            ask(ANNE, traceparent=f"00-{TRACE}-{SENDER}-01"), ask(BERT)
        )
        assert trace == TRACE != other
        names = []
        at = bytes.fromhex(parent)  # the server's own span is a child of this one
        while at != bytes.fromhex(SENDER):
            await until(lambda at=at: at in collector.spans, f"the span above {names} is sent")
            span = collector.spans[at]
            assert span.trace_id.hex() == TRACE
            names.append(span.name)
            at = span.parent_span_id
        assert names[1:-1] == ["divingbell.call", "divingbell.cell"]
        told = str([span for span in collector.spans.values() if "divingbell" in span.name])
        assert "anne" not in told and "bert" not in told and "place" not in told
