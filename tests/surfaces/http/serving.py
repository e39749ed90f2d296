"""A server in this process, and clients with tokens."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2

from divingbell import Divingbell
from divingbell.agent.scripted import Line, Says, ScriptedModel
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from divingbell.surfaces.http import listening
from divingbell.surfaces.http.application import Application, application
from divingbell.surfaces.http.conversations import MakeModel
from tests.waiting import PATIENCE

ANNE, BERT = "anne-has-a-long-token", "bert-has-a-long-token"
EVENTS = {"Accept": "text/event-stream"}


@dataclass
class Site:
    """A server that listens."""

    app: Application
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str | None = ANNE, **headers: str) -> httpx2.AsyncClient:
        """A client of the API; paths begin with `/`."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx2.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=PATIENCE,
            limits=httpx2.Limits(max_connections=None),
        )


def known() -> Tokens:
    return Tokens({"anne": hash_of(ANNE), "bert": hash_of(BERT)}, frozenset(SCOPES))


@contextlib.asynccontextmanager
async def served(
    bell: Divingbell, tokens: Tokens | None = None, make_model: MakeModel | None = None
) -> AsyncIterator[Site]:
    app = application(bell, known() if tokens is None else tokens, make_model=make_model)
    ready = asyncio.Event()
    with listening.bound("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(listening.serve(app, listener, ready.set))
        await ready.wait()
        try:
            yield Site(app, listener.getsockname()[1])
        finally:
            serving.cancel()
            await asyncio.wait([serving])


class Talking:
    """A model whose lines a test gives."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.model = ScriptedModel(iter(self._next, None))

    def _next(self) -> Line | None:
        return self.lines.pop(0) if self.lines else Says("I have nothing to say.")

    async def made(self) -> ScriptedModel:
        return self.model


@dataclass
class Heard:
    """One Server-Sent Event."""

    number: int
    name: str
    data: Any


async def heard(answer: httpx2.Response) -> AsyncIterator[Heard]:
    """The events of a stream."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif "data" in fields:
            yield Heard(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
