"""`divingbell serve` and clients of it, with every byte recorded that it sends."""

import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.surfaces.mcp.conftest import Era
from tests.surfaces.mcp.serving import COMMAND, QUIET, Serving
from tests.waiting import PATIENCE

_RECORDED = '"$@" | tee "$0"'
APPROVAL = "The code wants to call "


class _RecordedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, record: bytearray) -> None:
        self._inner, self._record = inner, record

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._record += piece
            yield piece

    async def aclose(self) -> None:
        self._record += b"\n"
        await self._inner.aclose()


class _RecordedTransport(httpx2.AsyncHTTPTransport):
    def __init__(self) -> None:
        super().__init__()
        self._records: list[bytearray] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        lines = (name + b": " + value + b"\n" for name, value in response.headers.raw)
        record = bytearray(b"".join(lines))
        self._records.append(record)
        response.stream = _RecordedStream(response.stream, record)
        return response

    def sent(self) -> bytes:
        return b"\n".join(self._records)


class Wire:
    """What has come over the line."""

    def __init__(self) -> None:
        self.bytes = b""

    def parted(self) -> tuple[bytes, list[str]]:
        """Return the bytes without the questions for approvals, and those questions.

        They are the one thing that shows real values. In the newer era they are in an answer, of
        which the rest stays.
        """
        rest: list[bytes] = []
        questions: list[str] = []
        for line in self.bytes.splitlines():
            if APPROVAL.encode() in line:
                message = json.loads(line.removeprefix(b"data: "))
                found = list(_taken_approvals(message))
                questions += found
                line = json.dumps(message).encode() if found else line
            rest.append(line)
        return b"\n".join(rest), questions


def _taken_approvals(message: dict[str, Any]) -> Iterator[str]:
    """Take the questions for approvals out of a message, and yield them."""
    if message.get("method") == "elicitation/create" and _is_approval(message["params"]):
        yield message.pop("params")["message"]
    asked = message.get("result", {}).get("inputRequests", {})
    for key in [key for key, each in asked.items() if _is_approval(each["params"])]:
        assert key.startswith("divingbell-approval-")
        yield asked.pop(key)["params"]["message"]


def _is_approval(params: Mapping[str, Any]) -> bool:
    is_form = "decision" in params.get("requestedSchema", {}).get("properties", {})
    return is_form and str(params.get("message")).startswith(APPROVAL)


@contextlib.asynccontextmanager
async def over_stdio(
    arguments: list[str], environment: Mapping[str, str], folder: Path, era: Era, options: Any
) -> AsyncIterator[tuple[Client, Wire]]:
    """A client of a server of its own; its wire is there once the block has ended."""
    record, wire = folder / f"stdout-{era}", Wire()
    parameters = StdioServerParameters(
        command="sh",
        args=["-c", _RECORDED, str(record), COMMAND, "serve", *arguments],
        env={**os.environ, **QUIET, **environment},
    )
    async with Client(parameters, mode=era, **options) as client:
        yield client, wire
    wire.bytes = record.read_bytes()


@contextlib.asynccontextmanager
async def over_http(served: Serving, era: Era, options: Any) -> AsyncIterator[tuple[Client, Wire]]:
    """A client of a server that listens."""
    recorded, wire = _RecordedTransport(), Wire()
    async with httpx2.AsyncClient(
        headers=served.greeting["headers"], timeout=PATIENCE, transport=recorded
    ) as inner:
        transport = streamable_http_client(served.url, http_client=inner)
        async with Client(transport, mode=era, **options) as client:
            yield client, wire
    wire.bytes = recorded.sent()
