"""The books of all sessions, and what is entered in them."""

import asyncio
from collections.abc import Callable, Iterable

from divingbell.journal import tokens
from divingbell.journal.ledger import Accountant, Definitions
from divingbell.journal.totals import Totals
from divingbell.models import Ledger, Result
from divingbell.principal import Principal
from divingbell.tool import Tool


class LedgerRecorder:
    """One accountant a session; `tools` tells all tools that there are.

    The totals on disk are of sessions whose results a model reads. A command and a program have
    ledgers too, of what their calls brought, and add nothing to the totals.
    """

    def __init__(self, store: Totals | None, tools: Callable[[], Iterable[Tool]]) -> None:
        self._store = store
        self._tools = tools
        self._definitions = Definitions()
        self._accountants: dict[str, Accountant] = {}
        self._read_by_models: set[str] = set()
        self._warming: set[asyncio.Task[int]] = set()
        self._surface: str | None = None
        self._is_spared: Callable[[Tool], bool] = lambda _: True

    def serve_models(self, surface: str, is_spared: Callable[[Tool], bool]) -> None:
        """From now on models read: Divingbell's own `surface`, and the definitions of those tools
        that are not spared them."""
        self._surface, self._is_spared = surface, is_spared
        self.listed(self._tools())

    def read_by_model(self, session: str, *, first: bool) -> None:
        """A model reads what the session with this key shows; `first`: its conversation begins."""
        self._read_by_models.add(session)
        if first:
            self.of(session).open_conversation(self._surface or "")

    def of(self, session: str) -> Accountant:
        """The accountant of the session with this key."""
        found = self._accountants.get(session)
        if found is None:
            found = self._accountants[session] = Accountant(self._definitions)
        return found

    def listed(self, tools: Iterable[Tool]) -> None:
        """Count new definitions beforehand, where models are served: the first result shall not
        have to wait for it."""
        if self._surface is not None:
            task = asyncio.create_task(self._warm(list(tools)))
            self._warming.add(task)
            task.add_done_callback(self._warming.discard)

    async def _warm(self, tools: list[Tool]) -> int:
        await asyncio.to_thread(tokens.count, "a")
        return await self._definitions.count_later(tools)

    async def balance(
        self, session: str, principal: Principal, code: str, result: Result
    ) -> Ledger:
        """Return the ledger of an execution that has ended; remember it if a model reads it."""
        shown = result.text + "".join(result.notes) + str(result.error or "")
        images = sum(output.type.startswith("image/") for output in result.outputs)
        accountant = self.of(session)
        opens = accountant.opens_conversation
        spared = filter(self._is_spared, self._tools()) if opens else ()
        ledger = await accountant.close_execution(code, shown, spared, images=images)
        if self._store is not None and session in self._read_by_models:
            self._store.record(ledger, principal.user)
        return ledger

    def forget(self, session: str) -> None:
        self._accountants.pop(session, None)
        self._read_by_models.discard(session)

    async def close(self) -> None:
        for task in list(self._warming):
            task.cancel()
        if self._warming:
            await asyncio.wait(self._warming)
        if self._store is not None:
            await self._store.close()
