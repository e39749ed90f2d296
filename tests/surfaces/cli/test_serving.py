"""`divingbell serve --http`: what it says at its start, and when it does not start."""

import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.surfaces.mcp.conftest import text_of
from tests.surfaces.mcp.serving import COMMAND, serving
from tests.waiting import PATIENCE

TOKEN = "a-token-of-some-length"


async def test_without_tokens_it_makes_one_and_says_how_to_use_it() -> None:
    async with serving() as server:
        headers = server.greeting["headers"]
        assert headers["Authorization"].startswith("Bearer ")
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as inner,
            Client(streamable_http_client(server.url, http_client=inner)) as client,
        ):
            result = await client.call_tool("execute_python", {"code": "6 * 7"})
            assert text_of(result) == "42\n"


async def test_a_token_that_was_given_is_not_repeated() -> None:
    async with serving(environment={"DIVINGBELL_TOKENS": f"anne {TOKEN}"}) as server:
        assert server.greeting["headers"] == {"Authorization": "Bearer YOUR-TOKEN"}


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((), "localhost"), (("--allow-host", "bell.example.org"), "bell.example.org")],
    ids=["local", "named"],
)
async def test_where_it_listens_everywhere_a_name_is_told_that_clients_can_use(
    arguments: tuple[str, ...], name: str
) -> None:
    tokens = {"DIVINGBELL_TOKENS": f"anne {TOKEN}"}
    async with serving("--host", "0.0.0.0", *arguments, environment=tokens) as server:
        assert server.url.startswith(f"http://{name}:")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "there are no tokens"),
        (["--host", "0.0.0.0", "--no-token"], "loopback"),
        (["--no-token", "--token", f"anne={TOKEN}"], "exclude each other"),
        (["--no-token", "--token", f"anne={TOKEN}"], "divingbell token list"),
        (["--token", "anne=short"], "16 characters"),
        (["--token-file", "none"], "can't be read"),
        (["--mode", "magic"], "mode"),
        (["--privacy", "all"], 'privacy must be "off" or "secrets" or "personal"'),
        (["--private", "--privacy", "off"], "--private and --privacy exclude each other"),
        (["--host", "192.0.2.1", "--token", f"anne={TOKEN}"], "can't be listened at"),
    ],
    ids=str,
)
def test_what_can_not_be_meant_is_refused(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMAND, "serve", "--http", "--port", "0", *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr and TOKEN not in done.stderr
    assert done.stdout == ""


class _Collector(BaseHTTPRequestHandler):
    """Takes spans, as a collector of OpenTelemetry does."""

    received: ClassVar[bytearray] = bytearray()

    def do_POST(self) -> None:
        self.received.extend(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


async def test_traces_are_sent_to_a_collector() -> None:
    with HTTPServer(("127.0.0.1", 0), _Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        where = f"http://127.0.0.1:{collector.server_port}"
        environment = {"DIVINGBELL_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": where}
        try:
            async with serving(environment=environment) as server:
                headers = server.greeting["headers"]
                async with (
                    httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as inner,
                    Client(streamable_http_client(server.url, http_client=inner)) as client,
                ):
                    await client.call_tool("execute_python", {"code": "6 * 7"})
        finally:
            collector.shutdown()
            thread.join()
    for name in (b"divingbell.request POST", b"divingbell.cell", b"tools/call execute_python"):
        assert name in _Collector.received
