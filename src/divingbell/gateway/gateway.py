"""The gateway: upstream servers, their tools, and the way to them.

Hostile code stands in front of it, and servers that nobody trusts behind it. Whatever is asked of a
server passes the pipeline (divingbell.gateway.pipeline), and nowhere else.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from divingbell import logs
from divingbell.border.border import Border
from divingbell.errors import ToolFailed
from divingbell.gateway.catalog.catalog import Catalog
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.discovery import OWN, Discovery
from divingbell.gateway.functions.function import HostFunction
from divingbell.gateway.functions.host_tools import HOST, HostTools
from divingbell.gateway.pipeline import Pipeline, Request
from divingbell.gateway.policy.approvals import Approver
from divingbell.gateway.policy.labels import Source
from divingbell.gateway.policy.pins import Pins
from divingbell.gateway.requests import ServerRequests
from divingbell.gateway.search.embedding_worker import EmbeddingWorker
from divingbell.gateway.search.index import Index
from divingbell.gateway.shared import SharedParts
from divingbell.gateway.upstream.fleet import Fleet, MakeUpstream, OnChange, ServerState
from divingbell.gateway.visible_tools import VisibleTools
from divingbell.journal.journal import Journal
from divingbell.principal import Principal
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Entry, read_entries
from divingbell.settings.tables import Place
from divingbell.shares import weight
from divingbell.tool import Tool

if TYPE_CHECKING:
    from divingbell.gateway.search.embeddings import Embeddings

log = logs.logger("divingbell.gateway")

Question = Callable[[CallContext, Mapping[str, Any]], Awaitable[Answer]]
"""Answers what code asks, by the arguments that it gave.

Raises:
    ToolFailed: it can't be answered.
"""

DELEGATE = "delegate"


async def _nobody_to_delegate_to(context: CallContext, given: Mapping[str, Any]) -> Answer:
    raise ToolFailed(
        f"{DELEGATE}: there is nobody to give work to here: only the code of an agent has helpers, "
        "as deep as delegate_depth in [agent] says. Do it yourself",
        "tool_unavailable",
    )


class Gateway:
    """All upstream servers, and what can be asked of them."""

    def __init__(
        self,
        rules: Policy,
        folder: Folder,
        pins: Pins,
        make_upstream: MakeUpstream,
        journal: Journal,
        border: Border,
        on_approval: Approver | None = None,
        load_embeddings: "Callable[[], Embeddings] | None" = None,
        shared: SharedParts | None = None,
    ) -> None:
        self.policy = rules
        self.calls_at_once = rules.calls_at_once
        index = Index()
        self.catalog = Catalog(folder, index, self._as_code_sees_it, self._is_public)
        self._embedding_worker = (
            EmbeddingWorker(index, load_embeddings) if load_embeddings else None
        )
        self.fleet = Fleet(self.catalog, make_upstream, journal)
        self.fleet.on_change(self._tools_changed)
        self.host = HostTools(rules, self.fleet)
        self.visible = VisibleTools(rules, self.catalog, self.fleet, index, self.host)
        self.pipeline = Pipeline(
            rules,
            self.catalog,
            self.fleet,
            pins,
            journal,
            border,
            self.visible.find,
            self.host,
            on_approval,
            shared,
        )
        self.labels = self.pipeline.labels
        self.requests = ServerRequests(rules, self.pipeline)
        self.discovery = Discovery(
            rules, self.catalog, self.fleet, self.visible, self.requests, self.host
        )
        self._questions: dict[str, Question] = {DELEGATE: _nobody_to_delegate_to}
        self._own_questions: dict[str, dict[str, Question]] = {}
        """Those of single sessions, by their keys."""
        self._revision: Callable[[str], int] = lambda session: 0

    def register(self, name: str, question: Question, session: str | None = None) -> None:
        """Answer what code asks under this name, which no tool has: tools have a dot in theirs.

        It passes the budget, the limits of sizes and the journal, as `search_tools` does. Tokens in
        its arguments stay tokens. With the key of a session it is for that one alone, comes before
        what all have, and takes the place of an earlier one.
        """
        is_taken = session is None and name in self._questions
        if name in OWN or is_taken or "." in name:
            raise ValueError(f"{name!r} is answered already, or the name of a tool")
        if session is None:
            self._questions[name] = question
        else:
            self._own_questions.setdefault(session, {})[name] = question

    def count_revisions(self, revision: Callable[[str], int]) -> None:
        """Have `generation` count what else a session imports, by its key."""
        self._revision = revision

    def ask_also(self, approver: Approver) -> Callable[[], None]:
        """Have another one asked about calls, beside those who are asked already; returns the
        undo. The first answer counts."""
        self.pipeline.also_asked = approver

        def undo() -> None:
            self.pipeline.also_asked = None

        return undo

    async def approve_code(self, context: CallContext, findings: str, kinds: str) -> None:
        """Ask the person whether a cell may run in which a review has found something.

        Raises:
            ToolFailed: the person said no, or nobody could be asked.
        """
        await self.pipeline.approve_code(context, findings, kinds)

    # Servers come and go while it runs: see divingbell.gateway.upstream.fleet.

    @overload
    def add(self, entry: Entry) -> None: ...

    @overload
    def add(self, entry: str, table: Mapping[str, Any]) -> None: ...

    def add(self, entry: Entry | str, table: Mapping[str, Any] | None = None) -> None:
        """Add a server: its name and the table that the settings would have for it, or an entry.

        Raises:
            ConfigError: the table can't be used, or there is a server of that name.
        """
        if isinstance(entry, str):
            [entry] = read_entries({entry: table}, Place("gateway.add"))
        self.fleet.add(entry)

    async def remove(self, name: str) -> None:
        """Take a server away; calls to it that are under way fail.

        Raises:
            ConfigError: it is `host`, whose functions `remove_tool` takes away.
        """
        await self.fleet.remove(name)

    def servers(self) -> list[ServerState]:
        return self.fleet.servers()

    def on_change(self, callback: OnChange) -> Callable[[], None]:
        return self.fleet.on_change(callback)

    async def stop(self) -> None:
        """End every connection, and remember what is to be remembered."""
        await self.fleet.stop()
        self.host.stop()
        if self._embedding_worker is not None:
            await asyncio.to_thread(self._embedding_worker.stop)
        await self.pipeline.stop()

    def _tools_changed(self, kind: str, server: str) -> None:
        if kind == "tools" and self._embedding_worker is not None:
            self._embedding_worker.prepare(self.catalog.tools())

    def _as_code_sees_it(self, tool: Tool) -> Tool | None:
        """The tool without what the host sets; None if nobody may call it."""
        return None if self.policy.audience(tool) == "nobody" else self.policy.without_bound(tool)

    def _is_public(self, tool: Tool) -> bool:
        """Whether its file may lie in /servers, which all sessions of all users see."""
        return self.policy.audience(tool) == "everyone"

    # What code may ask for (divingbell.session.calls.ToolGateway)

    def generation(self, session: str) -> int:
        return self.discovery.generation(session) + self._revision(session)

    async def offer(self, session: str, functions: Sequence[HostFunction]) -> None:
        await self.host.offer(session, functions)

    def received(self, session: str, user: str, source: str) -> None:
        self.labels.add(session, user, Source(f"{HOST}.{source}"))

    def brought(self, client: Principal, source: str, tools: Sequence[str]) -> None:
        """Take it that a client gets something of the host's, which was made of what these tools
        (`server.tool`) have returned to others."""
        for tool in (f"{HOST}.{source}", *tools):
            self.labels.add(client, client.user, Source(tool))

    def cost(self, arguments: bytes) -> int:
        if len(arguments) > self.policy.max_arguments:
            return 0  # they will not be parsed
        return weight.weight_of(arguments, weight.MAX_ARGUMENTS) * weight.UNIT

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        own = self._own_questions.get(context.key, {})
        registered = own.get(name) or self._questions.get(name)
        if registered is not None:
            request = Request("question", name, context, raw=arguments, verbatim=True)
            answered: Question = registered
        elif name in OWN:
            request = Request("question", name, context, raw=arguments)
            answered = functools.partial(self.discovery.answer, name)
        else:
            return await self.requests.call_for_code(name, arguments, context)
        await self.pipeline.run(request, lambda: answered(context, request.given))
        assert request.answer is not None
        return request.answer

    async def forget(self, session: str) -> None:
        self._own_questions.pop(session, None)
        await self.pipeline.meter.forget(session)
        self.pipeline.approvals.forget(session)
        self.labels.forget(session)
        self.host.forget(session)
        await self.fleet.forget(session)

    def end_run(self, session: str) -> None:
        self.pipeline.approvals.end_run(session)
        self.pipeline.meter.end_run(session)

    # What hints name (divingbell.session.hints.Surroundings)

    @property
    def has_servers(self) -> bool:
        return bool(self.fleet)

    def fetching(self, user: str) -> list[str]:
        return self.visible.fetching(user)

    def signature_of(self, name: str, user: str) -> str | None:
        return self.visible.signature_of(name, user)

    # What programs look for

    async def search(
        self,
        query: str = "",
        detail_level: str = "name_only",
        limit: int = 10,
        server: str | None = None,
        user: str = "",
    ) -> list[dict[str, Any]]:
        """Find tools, the best first: see `VisibleTools.search`."""
        return await self.visible.search(query, detail_level, limit, server, user)

    def tools(self, server: str | None = None, user: str = "") -> list[Tool]:
        """The tools that this user may see."""
        return self.visible.tools(server, user)
