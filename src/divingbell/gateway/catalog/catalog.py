"""The catalog of all tools of all servers: by name, by what they do, and as files to read."""

import difflib
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from divingbell import text
from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.catalog import naming
from divingbell.gateway.catalog.definitions import (
    MAX_DESCRIPTION,
    Definition,
    giving_way,
    tools_of,
)
from divingbell.gateway.catalog.descriptions import check_level, fitting
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.search.entry import IndexEntry
from divingbell.gateway.search.index import MAX_QUERY, Index
from divingbell.gateway.search.section import Section
from divingbell.gateway.search.stemming import stems
from divingbell.tool import Tool

MAX_LIMIT = 100
MAX_COMPARED = 50
"""Names that a misspelt one is compared with, and the most letters that such a name has. Measured:
comparing takes 20 µs for each. For the rest there is the search by words."""
MAX_COMPARED_LENGTH = 80
MAX_SLIPS = 4
"""Letters too many or too few in a name that was meant."""
MAX_SERVERS = 3
"""Servers that a search names: more would be a list to read, and not an answer."""
MAX_EXAMPLES = 3
PREFIX = "mcp__"


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The tools of one server, read and ready to be taken in."""

    server: str
    package: str
    tools: dict[str, Tool]
    visible: list[Tool]
    public: list[Tool]
    section: Section
    notes: str


class Catalog:
    """The tools of all servers.

    `as_seen` returns what the code may see of a tool, `is_public` whether all users may see it.
    """

    def __init__(
        self,
        folder: Folder,
        index: Index,
        as_seen: Callable[[Tool], Tool | None],
        is_public: Callable[[Tool], bool],
    ) -> None:
        self._folder = folder
        self._index = index
        self._as_seen = as_seen
        self._is_public = is_public
        self._packages: dict[str, str] = {}
        self._tools: dict[str, dict[str, Tool]] = {}
        self._visible: dict[str, list[Tool]] = {}
        self.revision = 0
        """Changes whenever a list of tools does."""
        self._public: dict[str, int | None] = {}
        """The number of a server's tools that have files; None until it has listed its tools."""

    @property
    def generation(self) -> int:
        """Changes whenever the files do."""
        return self._folder.generation

    @property
    def servers(self) -> list[str]:
        """The names of all servers."""
        return list(self._packages)

    def package(self, server: str) -> str:
        """Return the name that code imports a server by."""
        return self._packages[server]

    def add_server(self, name: str) -> None:
        """Add a server, whose tools are listed later."""
        self._packages = package_names([name], self._packages)

    def expect(self, server: str) -> Callable[[], None]:
        """Show a server whose tools are still to come; returns what writes its files."""
        self._public.setdefault(server, None)
        package, listed_servers = self._packages[server], self._listed_servers()

        def write() -> None:
            self._folder.expect(server, package)
            self._folder.write_index(listed_servers)

        return write

    def read(
        self, server: str, definitions: Iterable[Definition], instructions: str
    ) -> ServerTools:
        """Read a server's tools, so that they can be called and found. Any thread may."""
        package = self._packages.get(server, "")
        made = tools_of(server, package, definitions)
        visible = [seen for tool in made.values() if (seen := self._as_seen(tool)) is not None]
        public = [tool for tool in visible if self._is_public(tool)]
        section = Section(server, (IndexEntry(tool, instructions) for tool in giving_way(visible)))
        # Its words are about its tools: where none is for everyone, they are not either.
        notes = text.visible(instructions, MAX_DESCRIPTION) if public or not made else ""
        return ServerTools(server, package, made, visible, public, section, notes)

    def replace(self, new: ServerTools) -> Callable[[], None]:
        """Have these tools of a server, and no others of it.

        Returns:
            What writes their files, which takes about a millisecond a tool: call it in a thread,
            one after the other.
        """
        server = new.server
        self.revision += 1
        self._tools[server], self._visible[server] = new.tools, new.visible
        self._public[server] = len(new.public)
        self._index.replace(new.section)
        listed_servers = self._listed_servers()

        def write() -> None:
            self._folder.write(server, new.package, new.public, new.notes)
            self._folder.write_index(listed_servers)

        return write

    def remove(self, server: str) -> Callable[[], None]:
        """Forget a server; returns what removes its files, as `replace` does."""
        self.revision += 1
        package = self._packages.pop(server, None)
        self._tools.pop(server, None)
        self._visible.pop(server, None)
        self._public.pop(server, None)
        self._index.remove(server)
        listed_servers = self._listed_servers()

        def write() -> None:
            if package is not None:
                self._folder.remove(package)
            self._folder.write_index(listed_servers)

        return write

    def _listed_servers(self) -> list[tuple[str, str, int | None]]:
        return [(server, self._packages[server], number) for server, number in self._public.items()]

    # Looking things up

    def find(self, name: str, wanted: Callable[[Tool], bool] = lambda _: True) -> Tool:
        """Return the tool of that name: `server.tool`, with Python's names, or `mcp__server__tool`.

        Raises:
            ToolFailed: there is none; the words name those like it that are `wanted`.
        """
        tool = self.known(name)
        if tool is not None:
            return tool
        query = split_name(name)[1] or name
        raise ToolFailed(self._unknown_tool_message(name, query, wanted), "tool_unknown")

    def known(self, name: str) -> Tool | None:
        """Return the tool of that name, if there is one."""
        server, called = split_name(name)
        tools = self._tools.get(self._server_called(server) or "", {})
        return tools.get(called) or _by_function(tools.values(), called)

    def has_list(self, server: str) -> bool:
        """Whether the server has ever listed its tools."""
        return server in self._tools

    def lists(self, tool: Tool) -> bool:
        """Whether the server has this very tool, and not another one of its name."""
        return self._tools.get(tool.server, {}).get(tool.name) == tool

    def server_in(self, name: str) -> str | None:
        """Return the server in the name of a tool, whether it has that tool or not."""
        return self._server_called(split_name(name)[0])

    def _server_called(self, name: str) -> str | None:
        """The server of that name, else the one whose package has that name."""
        if name in self._packages:
            return name
        return next((known for known, package in self._packages.items() if package == name), None)

    def _unknown_tool_message(self, name: str, query: str, wanted: Callable[[Tool], bool]) -> str:
        near: list[str] = []
        if len(name) <= MAX_COMPARED_LENGTH:
            alike = (
                tool
                for tool in self.tools(self.server_in(name))
                if abs(len(tool.full_name) - len(name)) <= MAX_SLIPS
            )
            # No more are looked at than are compared: a server may have thousands.
            compared = filter(wanted, itertools.islice(alike, MAX_COMPARED))
            near = difflib.get_close_matches(name, [tool.full_name for tool in compared], 3)
        # By words alone: whoever calls what is not there without end must not cost much.
        found = self._index.search(query, 3, wanted=wanted, near={}) if not near else []
        near = near or [tool.full_name for tool in found]
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        wrong = text.one_line(name, 200)
        return f"there is no tool {wrong!r}{hint or '; search_tools() shows what there is'}"

    def check_server(self, name: str) -> str:
        """Return the server's own name for a name or a Python name.

        Raises:
            ToolFailed: there is no such server.
        """
        found = self._server_called(name)
        if found is not None:
            return found
        known = f"there is: {', '.join(self._packages)}" if self._packages else "none is configured"
        words = f"there is no server {text.one_line(name, 80)!r}; {known}"
        raise ToolFailed(words, "tool_unknown")

    def tools(self, server: str | None = None) -> list[Tool]:
        """Return the tools that the code may see."""
        names = [server] if server is not None else self._visible
        return [tool for name in names for tool in self._visible.get(name, ())]

    def search(
        self,
        query: str,
        detail_level: str,
        limit: int,
        server: str | None,
        wanted: Callable[[Tool], bool],
        near: Mapping[bytes, float] | None = None,
    ) -> list[Tool]:
        """Return the best matches among those `wanted`, as many as can be described at once.

        Raises:
            InvalidInput: there is no such level, or the limit is no number of things.
            ToolFailed: there is no such server.
        """
        check_level(detail_level)
        where = None if server is None else self.check_server(str(server))
        found = self._index.search(query, _checked_limit(limit), where, wanted, near)
        return fitting(found, detail_level)

    def best_servers(
        self,
        query: str,
        limit: int,
        server: str | None,
        wanted: Callable[[Tool], bool],
        near: Mapping[bytes, float] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the servers that fit a query best: how many tools each has, and the best of them.

        They are three at most, so that they can be looked at one by one. A query without a word
        that says anything lists servers by name, up to the limit.

        Raises:
            InvalidInput: the limit is no number of things.
            ToolFailed: there is no such server.
        """
        most = _checked_limit(limit)
        if stems(query[:MAX_QUERY]):
            most = min(most, MAX_SERVERS)
        if server is None:
            names = self._index.best_servers(query, most, wanted, near)
        else:
            names = [self.check_server(str(server))]
        return [self._server_found(name, query, wanted, near) for name in names]

    def _server_found(
        self,
        server: str,
        query: str,
        wanted: Callable[[Tool], bool],
        near: Mapping[bytes, float] | None,
    ) -> dict[str, Any]:
        best = self._index.search(query, MAX_EXAMPLES, server, wanted, near)
        return {
            "server": server,
            "tools": sum(map(wanted, self._visible.get(server, ()))),
            "best": [tool.full_name for tool in best],
        }


def _checked_limit(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        given = str(limit)[:80]
        raise InvalidInput(f"limit is a whole number of tools, 1 or more, not {given!r}")
    return min(limit, MAX_LIMIT)


def package_names(names: Iterable[str], taken: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the packages of servers that are added in this order, after those `taken`."""
    found = dict(taken or {})
    for name in names:
        found |= naming.unique([name], set(found.values()), reserved=())
    return found


def split_name(name: str) -> tuple[str, str]:
    """Return the server and the tool in `server.tool` or `mcp__server__tool`."""
    if name.startswith(PREFIX):
        server, _, wanted = name.removeprefix(PREFIX).partition("__")
    else:
        server, _, wanted = name.partition(".")
    return server, wanted


def _by_function(tools: Iterable[Tool], name: str) -> Tool | None:
    return next((tool for tool in tools if tool.function == name), None)
