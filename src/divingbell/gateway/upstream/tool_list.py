"""The tool list of one server: read, kept for the next start, and read again when it changes."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import mcp_types
from mcp import Client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from divingbell.gateway.upstream import paging
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.tool_list_cache import Listing, ToolListCache
from divingbell.gateway.upstream.transport.server_log import ServerLog
from divingbell.settings.servers import Server

TIMEOUT = 30.0
"""Seconds that a server has to give a list."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 60.0
PAUSE_SHARE = 10
"""The pause after a new list is so many times as long as reading that list took."""


@dataclass(frozen=True, slots=True)
class ListedTools:
    """Tools as a server has listed them, without its secrets, and all of them as one text."""

    tools: list[mcp_types.Tool]
    text: str
    """To compare it with another one."""


class ToolList:
    """The tools and the instructions of a server, as it last gave them.

    `on_tools` hears each list that is another one than the one before.
    """

    def __init__(
        self,
        server: Server,
        cache: ToolListCache | None,
        redactor: Redactor,
        server_log: ServerLog,
        on_tools: Callable[[list[mcp_types.Tool]], None],
    ) -> None:
        self.tools: list[mcp_types.Tool] = []
        self.instructions: str | None = None
        self.protocol_version: str | None = None
        self._server = server
        self._cache = cache
        self._redactor = redactor
        self._log = server_log
        self._on_tools = on_tools
        self._announced: str | None = None
        self._kept: tuple[str | None, str | None] | None = None
        self._is_stale = asyncio.Event()

    @property
    def is_legacy(self) -> bool:
        """Whether the server spoke the older protocol when it was last heard."""
        return self.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS

    def recall(self) -> bool:
        """Announce the list that was kept last time; return whether there is one."""
        kept = self._cache.load(self._server) if self._cache is not None else None
        if kept is None:
            return False
        self.instructions, self.protocol_version = kept.instructions, kept.protocol_version
        self._announce(self._cleaned(kept.tools))
        return True

    async def read(self, client: Client) -> ListedTools:
        """Ask the server for its tools. Raises: whatever the SDK does."""
        # Beside the event loop, which thousands of long descriptions would hold up.
        return await asyncio.to_thread(self._cleaned, await paging.tools(client))

    async def take(self, listed: ListedTools) -> None:
        """Have this list from now on: keep it for the next start, and announce it if it is new."""
        await self._keep(listed)
        self._announce(listed)

    async def renew(self, client: Client) -> None:
        """Read the list again. Raises: TimeoutError, and whatever the SDK does."""
        async with asyncio.timeout(TIMEOUT):
            await self.take(await self.read(client))

    def expire(self) -> None:
        """Have `follow` read the list again: the server says that it has changed."""
        self._is_stale.set()

    async def follow(self, client: Client) -> None:
        """Read the list again whenever it has expired, for as long as nobody cancels it."""
        now = asyncio.get_running_loop().time
        while True:
            await self._is_stale.wait()
            self._is_stale.clear()
            began = now()
            try:
                await self.renew(client)
            except Exception as error:
                self._log.note(f"its new list of tools can't be read: {type(error).__name__}")
            # A server that announces without end costs little, however long its list is.
            pause = max(SHORTEST_PAUSE, PAUSE_SHARE * (now() - began))
            await asyncio.sleep(min(pause, LONGEST_PAUSE))

    def _cleaned(self, tools: list[mcp_types.Tool]) -> ListedTools:
        clean = [self._redactor.clean_model(tool) for tool in tools]
        return ListedTools(clean, "\n".join(tool.model_dump_json(by_alias=True) for tool in clean))

    async def _keep(self, listed: ListedTools) -> None:
        about = (self.instructions, self.protocol_version)
        if self._cache is None or (listed.text == self._announced and self._kept == about):
            return
        self._kept = about
        listing = Listing(listed.tools, self.instructions, self.protocol_version)
        await asyncio.to_thread(self._cache.store, self._server, listing)

    def _announce(self, listed: ListedTools) -> None:
        if listed.text != self._announced:
            self._announced = listed.text
            self.tools = listed.tools
            self._on_tools(listed.tools)
