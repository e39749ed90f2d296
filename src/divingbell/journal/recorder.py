"""The ledgers of all sessions: results of their calls, counted when a cell has ended."""

import asyncio
from collections.abc import Callable, Iterable

from divingbell.journal import tokens
from divingbell.journal.events import CallEnded, JournalEvent, SessionEnded
from divingbell.journal.ledger import Accountant, Definitions
from divingbell.models import Ledger, Result
from divingbell.tool import Tool


class LedgerRecorder:
    """A subscriber that keeps an accountant for each session; `tools` tells all that there are.

    A command and a program have ledgers too, of what their calls brought; the definitions of tools
    count where a model reads.
    """

    def __init__(
        self, tools: Callable[[], Iterable[Tool]], has_servers: Callable[[], bool]
    ) -> None:
        self._tools = tools
        self._has_servers = has_servers
        self._definitions = Definitions()
        self._accountants: dict[str, Accountant] = {}
        self._warming: set[asyncio.Task[int]] = set()
        self._surface: str | None = None
        self._is_spared: Callable[[Tool], bool] = lambda _: True

    def take(self, event: JournalEvent) -> None:
        """Enter what code has got from a tool, and no model has read; see the journal."""
        if isinstance(event, CallEnded):
            is_call = event.kind == "tool" and event.by == "code"
            if is_call and event.result is not None:
                accountant = self.of(event.key)
                accountant.note_result(event.name, event.raw, event.result, event.body)
        elif isinstance(event, SessionEnded):
            self._accountants.pop(event.key, None)

    def serve_models(self, surface: str, is_spared: Callable[[Tool], bool]) -> None:
        """Count for models from now on: they read Divingbell's own `surface`, and the definitions
        of those tools that are not spared them."""
        self._surface, self._is_spared = surface, is_spared
        self.count_soon(self._tools())

    def open_conversation(
        self, session: str, is_spared: Callable[[Tool], bool] | None = None
    ) -> None:
        """Note that a model begins to read what the session with this key shows; `is_spared` is for
        one that has other tools than most."""
        accountant = self.of(session)
        accountant.open_conversation(self._surface or "")
        accountant.is_spared = is_spared

    def open_agent(
        self, session: str, surface: str | None, is_spared: Callable[[Tool], bool]
    ) -> None:
        """Note that the model of an agent reads what the session with this key shows. `surface` is
        all that it is told of it as a conversation begins; None for one that goes on."""
        accountant = self.of(session)
        accountant.is_read = True
        accountant.is_spared = is_spared
        if surface is not None:
            accountant.open_conversation(surface)

    def is_read(self, session: str) -> bool:
        """Return whether the model of an agent reads what this session shows."""
        accountant = self._accountants.get(session)
        return accountant is not None and accountant.is_read

    def of(self, session: str) -> Accountant:
        """Return the accountant of the session with this key."""
        found = self._accountants.get(session)
        if found is None:
            found = self._accountants[session] = Accountant(self._definitions)
        return found

    def count_soon(self, tools: Iterable[Tool]) -> None:
        """Count new definitions beforehand, where models are served: the first result shall not
        have to wait for it."""
        if self._surface is not None:
            task = asyncio.create_task(self._count(list(tools)))
            self._warming.add(task)
            task.add_done_callback(self._warming.discard)

    async def _count(self, tools: list[Tool]) -> int:
        await asyncio.to_thread(tokens.count, "a")
        return await self._definitions.count_later(tools)

    async def ledger_of(self, session: str, code: str, result: Result) -> Ledger | None:
        """Return the ledger of a cell that has ended; none where no tools could save anything."""
        if not self._has_servers():
            return None
        shown = result.text + "".join(result.notes) + str(result.error or "")
        images = sum(output.type.startswith("image/") for output in result.outputs)
        # Not kept: its session may have ended already.
        accountant = self._accountants.get(session) or Accountant(self._definitions)
        opens = accountant.opens_conversation
        is_spared = accountant.is_spared or self._is_spared
        spared = filter(is_spared, self._tools()) if opens else ()
        return await accountant.close_execution(code, shown, spared, images=images)

    async def close(self) -> None:
        for task in list(self._warming):
            task.cancel()
        if self._warming:
            await asyncio.wait(self._warming)
