"""Skills for clients, by MCP's Skills extension: each file a resource, with a digest of it.

Digests are of what a client gets when it reads a file. That may be another text than the one that
is kept: Markdown is made visible as all words of others are, and everything passes the border. The
head of a SKILL.md is told as it stands in that text, because clients compare the two.
"""

import asyncio
import base64
import contextlib
import hashlib
import itertools
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp import MCPError

from divingbell import logs
from divingbell.errors import FileRefused, SkillRefused
from divingbell.gateway.gateway import Gateway
from divingbell.principal import Principal
from divingbell.shares import weight
from divingbell.skills import frontmatter, names
from divingbell.skills.record import OFFERED, Kept, Summary
from divingbell.skills.store import Stores
from divingbell.skills.tool_digests import ToolDigests
from divingbell.surfaces.mcp import workspace
from divingbell.surfaces.mcp.exits import LONG, MAX_TEXT, Exits
from divingbell.surfaces.mcp.file_reads import Encoded, Reading, encode
from divingbell.text import everywhere, uncovered

log = logs.logger("divingbell")

EXTENSION = "io.modelcontextprotocol/skills"
SCHEME = "skill://"
LOADED = "load_skill"
"""What rules about flows know skills by, whether code or a client has got one."""
TEMPLATE = types.ResourceTemplate(
    uri_template=SCHEME + "{skill}/{+path}", name="skill", description="A file of a skill."
)
MAX_PAGE = 100
"""Skills in one answer. Clients that read all pages stop after some hundred."""
MAX_PAGE_BYTES = 4 << 20
"""Bytes of files that are looked at for one answer; a single skill may have twice as many."""
MAX_LISTED = 200
"""Skills among the resources; `skills/list` has them all."""
MAX_ENTRIES = 2_000
"""Entries that are remembered, where the border changes nothing. One has about 150 bytes a file."""
MAX_ENTRY_FILES = 20
MAX_USERS = 16
"""Users whose lists are remembered, until they change."""
_WORDS = ("text/markdown", "text/plain")
"""Files that a model reads as instructions."""

Entry = Mapping[str, Any]


class ListParams(types.PaginatedRequestParams):
    """Parameters of `skills/list`."""


class GetParams(types.RequestParams):
    """Parameters of `skills/get`."""

    uri: str


class ListResult(types.PaginatedResult, types.CacheableResult):
    """The result of `skills/list`."""

    skills: list[dict[str, Any]]
    result_type: types.ResultType = "complete"


class GetResult(types.CacheableResult):
    """The result of `skills/get`."""

    skill: dict[str, Any]
    result_type: types.ResultType = "complete"


class ServedSkills:
    """Offers each user's skills to the clients of that user."""

    def __init__(self, stores: Stores, gateway: Gateway, exits: Exits, reading: Reading) -> None:
        self._stores = stores
        self._gateway = gateway
        self._tool_digests = ToolDigests(gateway)
        self._exits = exits
        self._reading = reading
        self._lists: OrderedDict[str, tuple[int, Mapping[str, Summary]]] = OrderedDict()
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    async def page(self, principal: Principal, cursor: str | None) -> ListResult:
        """Return the entries of some skills, in the order of their names.

        Raises:
            MCPError: the cursor is none of ours.
        """
        after = _checked(cursor) if cursor else ""
        async with self._turn(principal):
            return await self._page(principal, after)

    async def _page(self, principal: Principal, after: str) -> ListResult:
        offered = await self._offered(principal.user)
        left = [summary for name, summary in offered.items() if name > after]
        entries: list[dict[str, Any]] = []
        last, size = "", 0
        async for summary, entry in self._told(principal, left[:MAX_PAGE]):
            last = summary.name
            if entry is not None:
                entries.append(dict(entry))
                size += sum(each["size"] for each in entry["resources"])
            if size > MAX_PAGE_BYTES:
                break
        is_end = not left or last == left[-1].name
        return ListResult(skills=entries, next_cursor=None if is_end else last)

    async def _told(
        self, principal: Principal, summaries: list[Summary]
    ) -> AsyncIterator[tuple[Summary, Entry | None]]:
        await self._settle(principal, summaries)
        for summary in summaries:
            try:
                known = self._has_its_tools(summary)
                yield summary, await self._entry(principal, summary) if known else None
            except SkillRefused as error:
                log.warning("skills/list leaves one out: %s", error)
                yield summary, None

    async def get(self, principal: Principal, uri: str) -> GetResult:
        """Return the entry of a skill by the address of its SKILL.md.

        Raises:
            MCPError: this user has no such skill.
        """
        name, path = _parts(uri)
        if path != names.SKILL_FILE:
            raise _none(uri)
        async with self._turn(principal):
            summary = await self._one(uri, name, principal)
            return GetResult(skill=dict(await self._entry(principal, summary)))

    async def resources(self, principal: Principal) -> list[types.Resource]:
        """Return the SKILL.md of each skill, for clients that know resources alone."""
        try:
            offered = await self._offered(principal.user)
        except SkillRefused as error:  # the other resources are there all the same
            log.warning("resources/list leaves the skills out: %s", error)
            return []
        found = []
        listed = [*itertools.islice(offered.values(), MAX_LISTED)]
        await self._settle(principal, listed)
        for summary in filter(self._has_its_tools, listed):
            self._label(principal, summary)
            found.append(
                types.Resource(
                    uri=uri_of(summary.name, names.SKILL_FILE),
                    name=summary.name,
                    description=summary.description,
                    mime_type=workspace.kind_of(names.SKILL_FILE),
                )
            )
        return found

    async def read(self, principal: Principal, uri: str) -> types.ReadResourceResult:
        """Return the content of a file of a skill.

        Raises:
            MCPError: this user has no such skill, it has no such file, or too much is under way.
        """
        name, path = _parts(uri)

        async def pieces() -> list[bytes]:
            kept = await self._kept(principal, await self._one(uri, name, principal))
            files = kept.skill.all_files
            if path not in files:
                raise _none(uri)
            return [files[path]]

        with _translated():
            found = await self._reading.take(principal.user, pieces, as_text=True)
        return types.ReadResourceResult(contents=[await _content(uri, path, found)])

    @contextlib.asynccontextmanager
    async def _turn(self, principal: Principal) -> AsyncIterator[None]:
        with _translated():
            async with self._reading.turn(principal.user):
                yield

    # What there is

    async def _offered(self, user: str) -> Mapping[str, Summary]:
        """Return what is offered to a user, by name."""
        store = self._stores.of(user)
        generation = await asyncio.to_thread(lambda: store.generation)
        known = self._lists.get(user)
        if known is None or known[0] != generation:
            summaries = await asyncio.to_thread(store.summaries)
            offered = {each.name: each for each in summaries if each.record.state in OFFERED}
            known = self._lists[user] = (generation, offered)
        self._lists.move_to_end(user)
        while len(self._lists) > MAX_USERS:
            self._lists.popitem(last=False)
        return known[1]

    async def _one(self, uri: str, name: str, principal: Principal) -> Summary:
        summary = (await self._offered(principal.user)).get(name)
        if summary is None:
            raise _none(uri)
        await self._settle(principal, [summary])
        if not self._has_its_tools(summary):
            raise _none(uri)
        return summary

    async def _settle(self, principal: Principal, summaries: list[Summary]) -> None:
        """Wait until it is known what the tools of these skills are, and mark those that have
        changed."""
        await self._tool_digests.settle(summary.record for summary in summaries)
        await self._tool_digests.mark_changed(self._stores.of(principal.user), summaries)

    def _has_its_tools(self, summary: Summary) -> bool:
        """Whether the tools of a skill are, as far as is known, those that it was saved with."""
        record, digests = summary.record, self._tool_digests
        return not digests.changed(record) and not digests.untold(record)

    async def _kept(self, principal: Principal, summary: Summary) -> Kept:
        """Return a skill with its files. What it was made of is data of this conversation first."""
        self._label(principal, summary)
        store = self._stores.of(principal.user)
        return await asyncio.to_thread(store.get, summary.name, summary.version)

    def _label(self, principal: Principal, summary: Summary) -> None:
        self._gateway.brought(principal, LOADED, summary.record.labels)

    async def _entry(self, principal: Principal, summary: Summary) -> Entry:
        """Return the entry of a skill, as this principal's client sees it.

        Raises:
            SkillRefused: its head can't be told as it is.
        """
        entry = self._entries.get(summary.digest) if self._exits.is_open else None
        if entry is not None:
            self._label(principal, summary)
            self._entries.move_to_end(summary.digest)
            return entry
        kept = await self._kept(principal, summary)
        entry = await self._made(principal, kept)
        if self._exits.is_open and len(entry["resources"]) <= MAX_ENTRY_FILES:
            self._entries[summary.digest] = entry
            while len(self._entries) > MAX_ENTRIES:
                self._entries.popitem(last=False)
        return entry

    async def _made(self, principal: Principal, kept: Kept) -> Entry:
        name, shown = kept.skill.name, {}
        for path, data in kept.skill.all_files.items():
            uri = uri_of(name, path)
            # A file may be named after someone.
            address = await self._exits.address(uri, principal)
            shown[path] = (address, await self._as_read(principal, uri, path, data))
        return await asyncio.to_thread(_entry_of, name, shown)

    async def _as_read(self, principal: Principal, uri: str, path: str, data: bytes) -> bytes:
        """Return the bytes that a client gets when it reads a file."""
        content = await _content(uri, path, await encode([data], as_text=True))
        answer = {"contents": [content.model_dump(by_alias=True, mode="json", exclude_none=True)]}
        [read] = (await self._exits.content(answer, principal))["contents"]
        if "text" in read:
            return str(read["text"]).encode("utf-8", "surrogatepass")
        return base64.b64decode(read["blob"])


def _entry_of(name: str, shown: Mapping[str, tuple[str, bytes]]) -> Entry:
    """Return the entry of a skill whose files are shown like this, each at an address.

    Raises:
        SkillRefused: its head can't be told as it is.
    """
    head = frontmatter.read(shown[names.SKILL_FILE][1])
    if head != everywhere(head, MAX_TEXT) or head.get("name") != name:
        raise SkillRefused(
            f"the head of the skill {name} can't be shown as it is, for hidden characters or "
            "personal data in it: change its SKILL.md"
        )
    return {
        "uri": uri_of(name, names.SKILL_FILE),
        "frontmatter": head,
        "resources": [
            {
                "uri": address,
                "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                "size": len(data),
            }
            for address, data in shown.values()
        ],
    }


async def _content(
    uri: str, path: str, found: Encoded
) -> types.TextResourceContents | types.BlobResourceContents:
    kind = workspace.kind_of(path)
    if not found.is_text:
        return types.BlobResourceContents(uri=uri, mime_type=kind, blob=found.content)
    text = found.content
    if kind in _WORDS:
        text = await weight.beside(_visible, text, text=LONG)
    return types.TextResourceContents(uri=uri, mime_type=kind, text=text)


def _visible(text: str) -> str:
    # Line by line: a carriage return is taken out elsewhere, since it can overwrite a line.
    return "\r\n".join(map(uncovered, text.split("\r\n")))


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SkillRefused, FileRefused) as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None


def uri_of(name: str, path: str) -> str:
    """Return the address of a file of a skill."""
    return f"{SCHEME}{name}/{quote(path)}"


def _parts(uri: str) -> tuple[str, str]:
    """Return the name of a skill and the path of a file, as an address has them."""
    name, _, path = uri.removeprefix(SCHEME).partition("/")
    path = unquote(path)
    if not uri.startswith(SCHEME) or not path or quote(path) != uri.partition(f"{name}/")[2]:
        raise _none(uri)
    return name, path


def _checked(cursor: str) -> str:
    try:
        return names.check(cursor)
    except SkillRefused:
        raise MCPError(types.INVALID_PARAMS, "the cursor is none that was given out") from None


def _none(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, "No skill is served at this address", {"uri": uri})
