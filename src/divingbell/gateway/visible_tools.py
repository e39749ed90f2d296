"""Visible tools: what each user may see of the catalogue, found by name and by search."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from divingbell.gateway.catalog import wrappers
from divingbell.gateway.catalog.catalog import MAX_LIMIT, Catalog
from divingbell.gateway.catalog.descriptions import SERVERS, described
from divingbell.gateway.search.index import Index
from divingbell.gateway.upstream.fleet import Fleet
from divingbell.settings.policy import Policy
from divingbell.shares import weight
from divingbell.tool import Tool

log = logging.getLogger("divingbell.gateway")

MAX_COUNTS = 1_000
FETCHING = "fetch the content of a web page or download a file from a url"
MAX_FETCHING = 2
MAX_PARAMETERS = 100
GETTING = ("fetch", "get", "download", "read", "scrape", "crawl", "extract", "request", "navigate")
"""In the name of a tool: others with an address may open it for a person, or post to it."""
ADDRESSES = frozenset({"url", "urls", "uri", "link", "href", "address"})


class VisibleTools:
    """The tools of all servers, as far as the policy lets a user call them."""

    def __init__(self, rules: Policy, catalog: Catalog, fleet: Fleet, index: Index) -> None:
        self._policy = rules
        self._catalog = catalog
        self._fleet = fleet
        self._index = index
        self._encoding = asyncio.Lock()
        self._counts: dict[tuple[str | None, str], int] = {}
        self._counted_at = -1

    async def find(self, name: str, user: str) -> Tool:
        """See `Catalog.find`; a server that is just starting, or is broken, is heard first.

        Raises:
            ToolFailed: there is no such tool, or its server is not there.
        """
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
    ) -> list[dict[str, Any]]:
        """Find tools, the best first, described as far as was asked for.

        With the level "servers" it is the best servers that are found, in which one can look then.

        Raises: as `Catalog.search`.
        """
        near = await self._nearness(query)
        wanted = self._seen_by(user)
        if detail_level == SERVERS:
            return self._catalog.best_servers(query, limit, server, wanted, near)
        found = self._catalog.search(query, detail_level, limit, server, wanted, near)
        return await described(found, detail_level)

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

    def tools(self, server: str | None = None, user: str = "") -> list[Tool]:
        """The tools that this user may see."""
        return [tool for tool in self._catalog.tools(server) if self.may_see(tool, user)]

    def count(self, server: str | None, user: str) -> int:
        """How many they are. Counted once, because each search asks."""
        if self._counted_at != self._catalog.revision or len(self._counts) >= MAX_COUNTS:
            self._counts, self._counted_at = {}, self._catalog.revision
        if (server, user) not in self._counts:
            self._counts[server, user] = len(self.tools(server, user))
        return self._counts[server, user]

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
