"""A session of a service: cells are run there, in the library's own words."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx2

from divingbell.client import answers
from divingbell.client.connection import Connection
from divingbell.client.files import Files
from divingbell.errors import InvalidInput, ServiceUnreachable
from divingbell.models import Completion, Event, Limits, Result, Variable
from divingbell_inside import values

EVENTS = "text/event-stream"
MAX_EVENT = 256 << 20
"""Bytes of one event: the last one has all that a cell has shown."""


class Session:
    """A session: cells run in it one after another, in the order in which they were asked for."""

    def __init__(self, connection: Connection, about: answers.Json) -> None:
        self.id: str = about["id"]
        """As its owner knows it."""
        self.labels: Mapping[str, str] = dict(about["labels"])
        self.limits: Limits = answers.limits(about["limits"])
        self.files = Files(connection, self.id)
        self._connection = connection
        self._path = f"/sessions/{quote(self.id, safe='')}"

    async def run(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
    ) -> Result:
        """Run a cell and return its result. Cancelling this call interrupts the cell.

        Raises: what `Session.run` of the library does, and
            ServiceUnreachable: the service does not answer, or has gone; what ran was interrupted.
        """
        asked = request(code, timeout, context, argv)
        return answers.result(await self._connection.json("POST", self._execute, json=asked))

    async def stream(
        self,
        code: str,
        *,
        timeout: float | None = None,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Run a cell and yield its events as they come; the last one is `done` with the result.

        Leaving the loop early interrupts the cell. Takes and raises what `run` does.
        """
        asked = request(code, timeout, context, argv)
        async for event in events(self._connection, self._execute, asked):
            yield event

    async def interrupt(self) -> bool:
        """Stop the cell that is running; return whether one was."""
        told = await self._connection.json("POST", f"{self._path}/interrupt")
        return bool(told["interrupted"])

    async def reset(self) -> None:
        """Forget every variable. Files in the workspace stay."""
        await self._connection.send("POST", f"{self._path}/reset")

    async def variables(self) -> list[Variable]:
        """Describe the variables, without fetching them."""
        found = self._connection.items(f"{self._path}/variables")
        return [answers.variable(item) async for item in found]

    async def complete(self, code: str, position: int) -> list[Completion]:
        """Say how the code could go on at that position: names, attributes, files."""
        asked = {"code": code, "position": position}
        told = await self._connection.json("POST", f"{self._path}/complete", json=asked)
        return [answers.completion(item) for item in told["items"]]

    async def reveal(self, text: str) -> str:
        """Return a text with the values that tokens stand for; takes a token with that scope."""
        asked = {"text": text, "session": self.id}
        return str((await self._connection.json("POST", "/reveal", json=asked))["text"])

    async def close(self) -> None:
        """End every process of the session and remove its workspace."""
        await self._connection.send("DELETE", self._path)

    @property
    def _execute(self) -> str:
        return f"{self._path}/execute"

    def __repr__(self) -> str:
        return f"<Session {self.id!r} of a service>"


def request(
    code: str,
    timeout: float | None,
    context: Mapping[str, Any] | None,
    argv: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the body of a request to run code.

    Raises:
        InvalidInput: a value of the context can't be passed exactly as it is.
    """
    asked: dict[str, Any] = {"code": code, "timeout": timeout}
    if argv is not None:
        asked["argv"] = list(argv)
    if context is not None:
        asked["context"] = {name: _encoded(name, value) for name, value in context.items()}
    return {name: value for name, value in asked.items() if value is not None}


def _encoded(name: str, value: Any) -> Any:
    try:
        return values.encode(value)
    except values.NotPlain as error:
        raise InvalidInput(f"the context value {name!r:.80} can't be passed: {error}") from None


async def events(
    connection: Connection, path: str, asked: Mapping[str, Any]
) -> AsyncGenerator[Event, None]:
    """Run code and yield its events."""
    cell, accept = 0, {"Accept": EVENTS}
    async with connection.stream("POST", path, json=asked, headers=accept) as response:
        source = httpx2.EventSource(response, max_event_size=MAX_EVENT)
        async for told in source:
            data = json.loads(told.data)
            cell = data.get("cell", cell) if told.event == "started" else cell
            event = answers.event(told.event, data, cell)
            if event is not None:
                yield event
            if told.event == "done":
                return
    raise ServiceUnreachable("the service has ended its answer in the middle of a cell")
