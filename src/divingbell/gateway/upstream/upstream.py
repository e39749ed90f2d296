"""One upstream server: what can be asked of it, over a link that looks after itself."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import mcp_types
from mcp import Client, MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter

from divingbell import text
from divingbell.errors import ToolFailed
from divingbell.gateway.callers import Caller
from divingbell.gateway.upstream import paging
from divingbell.gateway.upstream.failures import NO_WORDS, closed, failed_call
from divingbell.gateway.upstream.flights import Flight
from divingbell.gateway.upstream.link import LIST_TIMEOUT, PATIENCE, Change, Link, State
from divingbell.gateway.upstream.paging import Item
from divingbell.shares import weight

__all__ = ["CALL_TIMEOUT", "Caller", "Change", "State", "Upstream"]

CALL_TIMEOUT = 60.0
MOST_ROUNDS = 10
MOST_VALUES = 100
"""Of a completion: the limit of the protocol."""
ROUND_PAUSE = 0.1
MAX_NAME = 8_000
_CALL: TypeAdapter[Any] = TypeAdapter(mcp_types.CallToolResult | mcp_types.InputRequiredResult)
_READ: TypeAdapter[Any] = TypeAdapter(mcp_types.ReadResourceResult | mcp_types.InputRequiredResult)
_PROMPT: TypeAdapter[Any] = TypeAdapter(mcp_types.GetPromptResult | mcp_types.InputRequiredResult)
_COMPLETION: TypeAdapter[Any] = TypeAdapter(mcp_types.CompleteResult)


class Upstream(Link):
    """Connects, lists, calls, and says in words what is wrong when it can't.

    `on_tools` hears each new list of tools, `on_changed` that resources or prompts are others
    now, `on_state` each change of `state`. All three are called on the event loop and must not
    block or raise. Nothing that is returned or raised holds a secret of the server.
    """

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        *,
        timeout: float | None = None,
        caller: Caller | None = None,
    ) -> mcp_types.CallToolResult:
        """Call a tool; a result with `is_error` is a result. Cancelling cancels the call upstream.

        The result is not checked against the tool's schema.

        Raises:
            ToolFailed: no result came, or none that makes sense.
        """
        given = None if arguments is None else dict(arguments)

        def request(**more: Any) -> mcp_types.CallToolRequest:
            params = mcp_types.CallToolRequestParams(name=name, arguments=given, **more)
            return mcp_types.CallToolRequest(params=params)

        what = f"{self.server.name}.{name[:200]}"
        result = await self._ask(what, request, _CALL, caller, timeout)
        assert isinstance(result, mcp_types.CallToolResult)
        return result

    async def read_resource(
        self, uri: str, caller: Caller | None = None, *, timeout: float | None = None
    ) -> mcp_types.ReadResourceResult:
        """Read a resource. Raises: as `call_tool`."""

        def request(**more: Any) -> mcp_types.ReadResourceRequest:
            params = mcp_types.ReadResourceRequestParams(uri=uri, **more)
            return mcp_types.ReadResourceRequest(params=params)

        what = f"{self.server.name}: resource {uri[:200]}"
        result = await self._ask(what, request, _READ, caller, timeout)
        assert isinstance(result, mcp_types.ReadResourceResult)
        return result

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        caller: Caller | None = None,
        *,
        timeout: float | None = None,
    ) -> mcp_types.GetPromptResult:
        """Get a prompt. Raises: as `call_tool`."""
        given = None if arguments is None else dict(arguments)

        def request(**more: Any) -> mcp_types.GetPromptRequest:
            params = mcp_types.GetPromptRequestParams(name=name, arguments=given, **more)
            return mcp_types.GetPromptRequest(params=params)

        what = f"{self.server.name}: prompt {name[:200]}"
        result = await self._ask(what, request, _PROMPT, caller, timeout)
        assert isinstance(result, mcp_types.GetPromptResult)
        return result

    async def list_resources(self) -> list[mcp_types.Resource]:
        """Return all resources; none if the server has no such thing. Raises: as `call_tool`."""
        return await self._list(paging.resources)

    async def list_resource_templates(self) -> list[mcp_types.ResourceTemplate]:
        """Return all templates of resources. Raises: as `call_tool`."""
        return await self._list(paging.resource_templates)

    async def list_prompts(self) -> list[mcp_types.Prompt]:
        """Return all prompts. Raises: as `call_tool`."""
        return await self._list(paging.prompts)

    async def complete(
        self,
        ref: mcp_types.ResourceTemplateReference | mcp_types.PromptReference,
        argument: mcp_types.CompletionArgument,
        context: Mapping[str, str] | None = None,
    ) -> mcp_types.CompleteResult:
        """Return what a value could go on with. Raises: as `call_tool`."""
        known = None
        if context is not None:
            known = mcp_types.CompletionContext(arguments=dict(context))

        def request(**more: Any) -> mcp_types.CompleteRequest:
            params = mcp_types.CompleteRequestParams(
                ref=ref, argument=argument, context=known, **more
            )
            return mcp_types.CompleteRequest(params=params)

        what = f"{self.server.name}: completion"
        result = await self._ask(what, request, _COMPLETION, None, None)
        assert isinstance(result, mcp_types.CompleteResult)
        return _as_many_as_allowed(result)

    async def _list(self, read: Callable[[Client], Awaitable[list[Item]]]) -> list[Item]:
        client = await self._connected()
        limit = self.server.timeout or LIST_TIMEOUT
        try:
            async with asyncio.timeout(limit):
                found = await read(client)
        except Exception as error:
            what = f"{self.server.name}: its list"
            raise await self._failed(error, client, what, limit) from None
        return await weight.beside(self._readable, found)

    def _readable(self, items: list[Item]) -> list[Item]:
        return self._cleaned([item for item in items if _can_be_named(item)])

    async def _ask(
        self,
        what: str,
        request: Callable[..., Any],
        adapter: TypeAdapter[Any],
        caller: Caller | None,
        timeout: float | None,
    ) -> object:
        limit = timeout or self.server.timeout or CALL_TIMEOUT
        again = True
        while True:
            client = await self._connected()
            with self._flights.begin(caller) as flight:
                try:
                    async with asyncio.timeout(limit) as flight.clock:
                        result = await self._rounds(client, request, adapter, flight)
                    return await weight.beside(self._questions.cleaned, result)
                except Exception as error:
                    if not again or not await self._unheard(error, client):
                        raise await self._failed(error, client, what, limit) from None
                    again = False

    async def _rounds(
        self, client: Client, request: Callable[..., Any], adapter: TypeAdapter[Any], flight: Flight
    ) -> BaseModel:
        """Send a request until it has its result: in between the server may ask for input."""
        heard = self._questions.progress(flight)
        more: dict[str, Any] = {}
        if client.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            more["_meta"] = {mcp_types.LOG_LEVEL_META_KEY: self._log_level}
        for _ in range(MOST_ROUNDS):
            result: BaseModel = await client.session.send_request(
                request(**more), adapter, progress_callback=heard
            )
            if not isinstance(result, mcp_types.InputRequiredResult):
                return result
            more.pop("input_responses", None)
            if result.input_requests:
                answers = await self._questions.answers(result.input_requests, flight)
                more["input_responses"] = answers
            else:
                await asyncio.sleep(ROUND_PAUSE)
            more["request_state"] = result.request_state
        raise ToolFailed(f"it asked for more input {MOST_ROUNDS} times")

    async def _unheard(self, error: Exception, client: Client) -> bool:
        """Whether a request was turned down before anything was done, and can be sent again."""
        if not isinstance(error, MCPError):
            return False
        if error.code == mcp_types.HEADER_MISMATCH:
            # The list that the headers were made from is old.
            with contextlib.suppress(Exception):
                await self._list_again(client)
                return True
        # A server at an address that was started anew knows nothing of our session.
        status = None if self._connection is None else self._connection.status
        unknown = error.message == NO_WORDS or "session" in error.message.lower()
        if status in (400, 404) and unknown:
            if self._client is client:
                self._client = None
                self._over.set()
            return True
        return False

    async def _failed(
        self, error: Exception, client: Client, what: str, limit: float
    ) -> ToolFailed:
        broken = self._over.is_set() or self._client is not client or closed(error)
        status = None if self._connection is None else self._connection.status
        if broken and self.state == "ready" and self._outcome is not None:
            await asyncio.wait([self._outcome], timeout=PATIENCE)  # it is about to say why
        if broken and self._needs_person:
            return self._unavailable()  # it was refused, not lost
        lost = text.without_folders(self.reason) if broken else None
        return failed_call(error, what, limit, self.redactor, lost=lost, status=status)


def _can_be_named(item: BaseModel) -> bool:
    """Whether what it is called can be shown, and so be asked for: its address, or its name."""
    name = getattr(item, "uri", None) or getattr(item, "uri_template", None)
    name = str(name or getattr(item, "name", ""))
    return text.one_line(name, MAX_NAME) == name


def _as_many_as_allowed(result: mcp_types.CompleteResult) -> mcp_types.CompleteResult:
    found = result.completion
    if len(found.values) <= MOST_VALUES:
        return result
    fewer = found.model_copy(update={"values": found.values[:MOST_VALUES], "has_more": True})
    return result.model_copy(update={"completion": fewer})
