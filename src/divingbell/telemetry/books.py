"""The books of all sessions, and what is entered in them."""

import asyncio
from collections.abc import Callable, Iterable

from divingbell.gateway.tool import Tool
from divingbell.models import Result
from divingbell.telemetry import tokens
from divingbell.telemetry.ledger import Accountant, Definitions, Ledger
from divingbell.telemetry.store import Store


class Books:
    """One accountant a session; `tools` tells all tools that there are."""

    def __init__(self, store: Store | None, tools: Callable[[], Iterable[Tool]]) -> None:
        self._store = store
        self._tools = tools
        self._definitions = Definitions()
        self._accountants: dict[str, Accountant] = {}
        self._warming: set[asyncio.Task[int]] = set()
        self.surface = ""
        """What the model reads of Divingbell itself, where it is an MCP server."""

    def of(self, session: str) -> Accountant:
        """The accountant of the session with this key."""
        found = self._accountants.get(session)
        if found is None:
            found = self._accountants[session] = Accountant(self._definitions, self.surface)
        return found

    def listed(self, tools: list[Tool]) -> None:
        """Count new definitions beforehand: the first result shall not have to wait for it."""
        task = asyncio.create_task(self._warm(tools))
        self._warming.add(task)
        task.add_done_callback(self._warming.discard)

    async def _warm(self, tools: list[Tool]) -> int:
        await asyncio.to_thread(tokens.count, "a")
        return await self._definitions.count_later(tools)

    async def balance(self, session: str, user: str | None, code: str, result: Result) -> Ledger:
        """Return the ledger of an execution that has ended, and remember it."""
        shown = result.text + "".join(result.notes) + str(result.error or "")
        images = sum(output.type.startswith("image/") for output in result.outputs)
        ledger = await self.of(session).close_execution(code, shown, self._tools(), images=images)
        if self._store is not None:
            self._store.record(ledger, user or "")
        return ledger

    def forget(self, session: str) -> None:
        self._accountants.pop(session, None)

    async def close(self) -> None:
        for task in list(self._warming):
            task.cancel()
        if self._warming:
            await asyncio.wait(self._warming)
        if self._store is not None:
            await self._store.close()
