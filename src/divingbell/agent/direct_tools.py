"""Tools of servers that the model calls itself, without code, as `server__tool`.

A call passes the gateway's pipeline as one of code does: the same rules, budgets, approvals and
border, and the journal has it. What comes back passes the border once more on its way to the model.
A long result does not go to the model but to a file of the session, where code can read it.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from divingbell.agent.events import AgentEvent, CellEvent, ToolEnded, ToolStarted
from divingbell.agent.history import Answered, Call, Image
from divingbell.agent.model import ModelTool
from divingbell.agent.tools import BadArguments
from divingbell.border.border import Border
from divingbell.errors import DivingbellError, FileMissing, FileRefused, FileTooLarge, ToolFailed
from divingbell.gateway.callers import SessionCaller
from divingbell.gateway.context import Asker, CallContext
from divingbell.gateway.gateway import Gateway
from divingbell.journal import tokens
from divingbell.journal.events import SessionEnded
from divingbell.journal.journal import Journal
from divingbell.models import Event
from divingbell.session.base import SessionHandle
from divingbell.shares import weight
from divingbell.text import everywhere
from divingbell.tool import Tool
from divingbell_inside import layout

if TYPE_CHECKING:
    import mcp_types

SEPARATOR = "__"
LONG = 2_000
"""Tokens of a result; a longer one goes to a file."""
START = 1_200
"""Characters of a long result that the model is shown."""
PIECE = 6_000
"""Characters that `read_result` returns at once: fewer than `LONG` tokens of most texts."""
MAX_KEYS = 30
"""Names of fields that the shape of a result tells."""
MAX_TEXT = 20_000
"""Characters of one text in a definition."""
MAX_FILE = 64 << 20
FOLDER = "results"
READ = "read_result"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of tools that all providers take."""
_NOTHING = "[the tool returned nothing]"


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a user may call, as they are when a conversation begins."""

    tools: Mapping[str, Tool]
    """By the names that the model calls them by."""
    for_code: Sequence[Tool] = ()
    """All that code can call, also those whose names no provider takes."""
    is_whole: bool = True
    """Whether all servers have listed their tools."""

    @property
    def left_out(self) -> list[str]:
        """The tools that can't be called directly, as their names can't be used."""
        named = {tool.full_name for tool in self.tools.values()}
        return [tool.full_name for tool in self.for_code if tool.full_name not in named]


async def offered(gateway: Gateway, session: SessionHandle) -> Offer:
    """Return the tools that the user of a session may call. A slow server is not waited for long,
    and its tools are then left to code."""
    await gateway.fleet.wait_for_tools(None)
    found = gateway.visible.tools(None, session.principal.user, session.key)
    named: dict[str, Tool] = {}
    for tool in found:
        names = (f"{tool.server}{SEPARATOR}{each}" for each in (tool.name, tool.function))
        name = next((each for each in names if _NAME.fullmatch(each) and each not in named), None)
        if name is not None:
            named[name] = tool
    is_whole = not any(gateway.fleet.is_awaited(state.name) for state in gateway.servers())
    return Offer(named, tuple(found), is_whole)


@dataclass(frozen=True, slots=True)
class _Read:
    """A result as it is read by the model."""

    text: str
    images: tuple[Image, ...] = ()
    failed: bool = False


class DirectCalls:
    """Makes the calls of one agent, on behalf of its session."""

    def __init__(
        self,
        gateway: Gateway,
        border: Border,
        journal: Journal,
        session: SessionHandle,
        *,
        asker: Asker | None = None,
        has_code: bool = True,
    ) -> None:
        """`has_code`: code of the model can read the files of long results."""
        self._gateway = gateway
        self._border = border
        self._session = session
        self._asker = asker
        self._has_code = has_code
        self._runs = itertools.count(1)
        self._files = itertools.count(1)
        # What the model has read it can write into code, and the other way round.
        gateway.labels.join(session.principal, session.key)
        self._unwatch = journal.watch(self._take)

    def _take(self, event: object) -> None:
        if isinstance(event, SessionEnded) and event.key == self._session.key:
            self._gateway.labels.forget(self._session.principal)
            self._unwatch()

    def tools(self, offer: Offer) -> "list[DirectTool | ReadResult]":
        """Return the tools for the model."""
        made: list[DirectTool | ReadResult] = [
            DirectTool(self, name, tool) for name, tool in offer.tools.items()
        ]
        if not self._has_code:
            made.append(ReadResult(self._border, self._session))
        return made

    async def call(self, tool: Tool, arguments: Mapping[str, Any], tell: Any) -> _Read:
        """Call a tool and return what the model reads of it; a failure is told, not raised."""
        session = self._session
        # Each call is a run of its own: there is no cell that they belong to together.
        context = CallContext(
            session.principal,
            session.id,
            session.key,
            "client",
            next(self._runs),
            self._asker,
            tell,
        )
        caller = SessionCaller(self._gateway.policy, context, tool.full_name)
        try:
            result = await self._gateway.requests.call(tool, arguments, context, caller)
        except ToolFailed as error:
            words = await self._border.outward(str(error), session.principal)
            return _Read(words, failed=True)
        finally:
            self._gateway.end_run(session.key)
        return await self._read(tool, result)

    async def _read(self, tool: Tool, result: "mcp_types.CallToolResult") -> _Read:
        principal = self._session.principal
        text = await weight.in_thread(lambda: _text_of(tool, result))
        seen = await self._border.outward(text, principal)
        if len(seen) > LONG and (await tokens.count_later(seen)).tokens > LONG:
            seen = await self._kept(tool, text, seen)
        if note := self._border.note(principal):
            seen += f"\n[{note}]"
        return _Read(seen or _NOTHING, self._images(result), bool(result.is_error))

    async def _kept(self, tool: Tool, text: str, seen: str) -> str:
        """Keep a long result in a file; return its start, its shape and the path.

        The file has what code would have got. Where a text is cut there may be half a value, which
        nobody would know any more: so all of it has passed the border before.
        """
        total = (await tokens.count_later(seen)).tokens
        shape, suffix = await weight.in_thread(lambda: shape_of(seen))
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", f"{tool.package}-{tool.function}")[:80]
        path = f"{FOLDER}/{name}-{next(self._files)}.{suffix}"
        try:
            await self._session.files.put(path, text)
        except DivingbellError as error:
            where = f"It could not be kept in a file: {error}"
        else:
            way = "code can read it" if self._has_code else f"{READ} reads on"
            where = f"All of it is in {layout.WORKSPACE}/{path}: {way}"
        return f"{seen[:START]}\n[… {total:,} tokens in all: {shape}. {where}]"

    def _images(self, result: "mcp_types.CallToolResult") -> tuple[Image, ...]:
        found = []
        for block in result.content:
            if block.type == "image":
                with contextlib.suppress(ValueError):
                    data = base64.b64decode(block.data, validate=True)
                    if not self._border.holds_back(self._session.principal, data):
                        found.append(Image(block.mime_type, data))
        return tuple(found)


class DirectTool:
    """One tool of a server, for the model."""

    def __init__(self, calls: DirectCalls, name: str, tool: Tool) -> None:
        self._calls = calls
        self._tool = tool
        schema = {"type": "object", "properties": {}, **(tool.input_schema or {})}
        self.definition = ModelTool(name, tool.description, everywhere(schema, MAX_TEXT))

    async def run(
        self, call: Call, arguments: dict[str, Any]
    ) -> AsyncGenerator[AgentEvent | Answered]:
        name = self.definition.name
        yield ToolStarted(call.id, name, call.arguments)
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.create_task(self._calls.call(self._tool, arguments, events.put_nowait))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield CellEvent(call.id, event)
            read = await task
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        yield ToolEnded(call.id, name, read.text, read.failed)
        yield Answered(call, read.text, read.images)


class ReadResult:
    """The tool that reads on in a long result, for a model that has no code to do it."""

    definition = ModelTool(
        READ,
        "Read on in a result that was too long to be shown, from a character on.",
        {
            "type": "object",
            "properties": {"path": {"type": "string"}, "start": {"type": "integer"}},
            "required": ["path"],
        },
    )

    def __init__(self, border: Border, session: SessionHandle) -> None:
        self._border = border
        self._session = session

    async def run(
        self, call: Call, arguments: dict[str, Any]
    ) -> AsyncGenerator[AgentEvent | Answered]:
        path, start = arguments.get("path"), arguments.get("start", 0)
        if not isinstance(path, str) or not isinstance(start, int) or start < 0:
            raise BadArguments(f"{READ} needs a path, a text, and start, a number from 0 on")
        yield ToolStarted(call.id, READ, call.arguments)
        failed = False
        try:
            text = await self._piece(path.removeprefix(f"{layout.WORKSPACE}/"), start)
        except (FileMissing, FileRefused, FileTooLarge) as error:
            text, failed = str(error), True
        yield ToolEnded(call.id, READ, text, failed)
        yield Answered(call, text)

    async def _piece(self, path: str, start: int) -> str:
        content = await self._session.files.get(path, most=MAX_FILE)
        text = content.decode("utf-8", "replace")
        seen = await self._border.outward(text, self._session.principal)
        end = min(start + PIECE, len(seen))
        rest = f"\n[characters {start:,} to {end:,} of {len(seen):,}]"
        return seen[start:end] + rest


def _text_of(tool: Tool, result: "mcp_types.CallToolResult") -> str:
    """Return a result as text: the structured value where there is one, as code gets it too, and
    the rest of its content."""
    value, blocks = result.structured_content, result.content
    if value is None:
        return "\n".join(map(_block_text, blocks))
    # Text beside a structured value is the same value once more, for older clients.
    others = [_block_text(block) for block in blocks if block.type != "text"]
    plain = value.get("result") if tool.wraps_result else value
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return "\n".join([text, *others])


def _block_text(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        text = getattr(block.resource, "text", None)
        return f"[a resource without text: {block.resource.uri}]" if text is None else str(text)
    if block.type == "resource_link":
        return f"[a link to a resource: {block.uri}]"
    return f"[{block.type}, {block.mime_type}]"


def shape_of(text: str) -> tuple[str, str]:
    """Return what a long text is, in words, and the ending of a file that has it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return f"text of {text.count(chr(10)) + 1:,} lines", "txt"
    if isinstance(value, list):
        return f"a JSON list of {len(value):,} items{_keys(value[0] if value else None)}", "json"
    if isinstance(value, dict):
        parts = [
            f"{key} ({len(inner):,} items{_keys(inner[0] if inner else None)})"
            if isinstance(inner, list)
            else str(key)[:80]
            for key, inner in itertools.islice(value.items(), MAX_KEYS)
        ]
        return f"a JSON object with {', '.join(parts)}", "json"
    return f"JSON, {type(value).__name__}", "json"


def _keys(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    names = ", ".join(str(key)[:80] for key in itertools.islice(item, MAX_KEYS))
    return f", objects with {names}"
