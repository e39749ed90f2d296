"""Visible tools: what each user may see of the catalogue, found by name and by search."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from divingbell import logs
from divingbell.gateway.catalog import wrappers
from divingbell.gateway.catalog.catalog import MAX_LIMIT, Catalog
from divingbell.gateway.catalog.descriptions import SERVERS, described, fitting
from divingbell.gateway.functions.host_tools import HOST, HostTools
from divingbell.gateway.search.index import Index
from divingbell.gateway.upstream.fleet import Fleet
from divingbell.settings.policy import Policy
from divingbell.shares import weight
from divingbell.tool import Tool

log = logs.logger("divingbell.gateway")

MAX_COUNTS = 1_000
FETCHING = "fetch the content of a web page or download a file from a url"
MAX_FETCHING = 2
MAX_PARAMETERS = 100
GETTING = ("fetch", "get", "download", "read", "scrape", "crawl", "extract", "request", "navigate")
"""In the name of a tool: others with an address may open it for a person, or post to it."""
ADDRESSES = frozenset({"url", "urls", "uri", "link", "href", "address"})


class VisibleTools:
    """The tools of all servers, as far as the policy lets a user call them."""

    def __init__(
        self, rules: Policy, catalog: Catalog, fleet: Fleet, index: Index, host: HostTools
    ) -> None:
        self._policy = rules
        self._catalog = catalog
        self._fleet = fleet
        self._index = index
        self._host = host
        self._encoding = asyncio.Lock()
        self._counts: dict[tuple[str | None, str], int] = {}
        self._counted_at = -1

    async def find(self, name: str, user: str, session: str = "") -> Tool:
        """See `Catalog.find`; a server that is just starting, or is broken, is heard first.

        What the session with this key has for itself comes before all else.

        Raises:
            ToolFailed: there is no such tool, or its server is not there.
        """
        if (own := self._host.find(name, session)) is not None:
            return own
        server = self._catalog.server_in(name)
        if server is not None:
            await self._fleet.wait_for_tools(server)
            if self._catalog.known(name) is None:
                await self._fleet.refresh(server)
                self._fleet.check(server)
        return self._catalog.find(name, self._seen_by(user))

    async def search(
        self,
        query: str = "",
        detail_level: str = "name_only",
        limit: int = 10,
        server: str | None = None,
        user: str = "",
        session: str = "",
    ) -> list[dict[str, Any]]:
        """Find tools, the best first, described as far as was asked for.

        Those that the session with this key has for itself come first.

        With the level "servers" it is the best servers that are found, in which one can look then.

        Raises: as `Catalog.search`.
        """
        near = await self._nearness(query)
        wanted = self._seen_by(user)
        if detail_level == SERVERS:
            return self._catalog.best_servers(query, limit, server, wanted, near)
        found = self._catalog.search(query, detail_level, limit, server, wanted, near)
        if server in (None, HOST):
            own = self._own(self._host.search(session, query, limit), user)
            found = fitting([*own, *found][: min(limit, MAX_LIMIT)], detail_level)
        return await described(found, detail_level)

    def _own(self, tools: Iterable[Tool], user: str) -> list[Tool]:
        """Those of a session's own that its user may call, as code sees them."""
        return [self._policy.without_bound(tool) for tool in tools if self.may_see(tool, user)]

    async def _nearness(self, query: str) -> Mapping[bytes, float]:
        if self._index.embeddings is None:
            return {}
        async with self._encoding:  # one at a time, so that the threads of others stay free
            try:
                return await weight.in_thread(lambda: self._index.nearness(query))
            except Exception:  # a model that somebody brought may fail in any way
                log.exception("search goes on by words alone: the model failed")
                self._index.embeddings = None
                return {}

    def tools(self, server: str | None = None, user: str = "", session: str = "") -> list[Tool]:
        """The tools that this user may see, with those that the session has for itself."""
        own = self._own(self._host.tools(session), user) if server in (None, HOST) else []
        return own + [tool for tool in self._catalog.tools(server) if self.may_see(tool, user)]

    def count(self, server: str | None, user: str, session: str = "") -> int:
        """How many they are. Counted once, because each search asks."""
        own = self._own(self._host.tools(session), user) if server in (None, HOST) else []
        if self._counted_at != self._catalog.revision or len(self._counts) >= MAX_COUNTS:
            self._counts, self._counted_at = {}, self._catalog.revision
        if (server, user) not in self._counts:
            self._counts[server, user] = len(self.tools(server, user))
        return self._counts[server, user] + len(own)

    def may_see(self, tool: Tool, user: str) -> bool:
        """Whether there are arguments with which this user may call the tool."""
        return self._policy.visible(tool, user)

    def _seen_by(self, user: str) -> Callable[[Tool], bool]:
        return lambda tool: self.may_see(tool, user)

    def fetching(self, user: str) -> list[str]:
        """Tools that could get something from an address, as code names them: a few.

        By words alone: whoever fails without end must not cost much.
        """
        found = self._index.search(FETCHING, MAX_LIMIT, wanted=self._seen_by(user), near={})
        fitting = (tool for tool in found if _takes_address(tool) and _says_it_gets(tool))
        return [f"servers.{tool.package}.{tool.function}" for tool in islice(fitting, MAX_FETCHING)]

    def signature_of(self, name: str, user: str) -> str | None:
        """How a tool is called that this user may see, by `package.function`."""
        tool = self._catalog.known(name)
        if tool is None or not self.may_see(tool, user):
            return None
        return wrappers.signature(self._policy.without_bound(tool))


def _takes_address(tool: Tool) -> bool:
    """Whether a tool has a parameter for an address on the web."""
    properties = (tool.input_schema or {}).get("properties")
    names = islice(properties, MAX_PARAMETERS) if isinstance(properties, Mapping) else ()
    return any(str(name).lower() in ADDRESSES for name in names)


def _says_it_gets(tool: Tool) -> bool:
    return any(verb in tool.name.lower() for verb in GETTING)
