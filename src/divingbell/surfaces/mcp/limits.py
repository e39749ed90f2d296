"""Limits of a request: how long its addresses and names may be, and how many answers it brings.

They are looked at before anything is made of a request, by the SDK or by us: to decode an address
of megabytes, or to validate thousands of answers, would keep everybody else waiting. What outlives
its request is held to them too: subscriptions, and what a client says of itself.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import mcp_types as types
from mcp import MCPError

from divingbell.shares import weight
from divingbell.surfaces.mcp.callers import Context
from divingbell.surfaces.mcp.client_channel import MAX_QUESTIONS

MAX_ADDRESS = 16 << 10
"""Characters of an address. The longest path of a file has 4,095 bytes, and each may be written as
three characters."""
MAX_NAME = 1_000
"""Characters of the name of a tool, a prompt or a session."""
MAX_STATE = 8 << 10
"""Characters of a sealed state. Ours have some hundred."""
MAX_SUBSCRIPTIONS = 1_000
"""Resources that one connection, or one stream, may want to hear of."""
MAX_SUBSCRIBED = 1 << 20
"""Characters of all their addresses."""
MAX_OPENING = 64 << 10
"""Bytes of a request that opens a connection: what a client says of itself is kept as long as the
connection."""


async def check(ctx: Context, call_next: Any) -> Any:
    """Refuse a request that is beyond a limit (a middleware, the first one).

    Raises:
        MCPError: it is; the message says which limit.
    """
    if ctx.params:
        _check(ctx.method, ctx.params)
    return await call_next(ctx)


def check_subscriptions(addresses: "set[str] | list[Any]") -> None:
    """Refuse more subscriptions than one connection, or one stream, may have.

    Raises:
        MCPError: there are too many, or their addresses are too long together.
    """
    if len(addresses) > MAX_SUBSCRIPTIONS:
        raise MCPError(types.INVALID_REQUEST, f"at most {MAX_SUBSCRIPTIONS} subscriptions")
    if sum(len(each) for each in addresses if isinstance(each, str)) > MAX_SUBSCRIBED:
        raise MCPError(
            types.INVALID_REQUEST,
            f"the addresses of your subscriptions have more than {MAX_SUBSCRIBED:,} characters "
            "together: subscribe to fewer",
        )


def _check(method: str, params: Mapping[str, Any]) -> None:
    if method == "initialize" and weight.is_large(params, text=MAX_OPENING):
        raise _beyond("what a client says of itself", MAX_OPENING, "characters")
    for uri in _addresses(params):
        if isinstance(uri, str) and len(uri) > MAX_ADDRESS:
            raise _beyond("an address", MAX_ADDRESS, "characters")
    for part in (params, params.get("ref"), params.get("argument")):
        name = part.get("name") if isinstance(part, Mapping) else None
        if isinstance(name, str) and len(name) > MAX_NAME:
            raise _beyond("a name", MAX_NAME, "characters")
    state = params.get("requestState")
    if isinstance(state, str) and len(state) > MAX_STATE:
        raise _beyond("requestState", MAX_STATE, "characters")
    answers = params.get("inputResponses")
    if isinstance(answers, Mapping) and len(answers) > MAX_QUESTIONS:
        raise _beyond("inputResponses", MAX_QUESTIONS, "answers")


def _addresses(params: Mapping[str, Any]) -> Iterator[Any]:
    yield params.get("uri")
    if isinstance(reference := params.get("ref"), Mapping):
        yield reference.get("uri")
    if isinstance(wanted := params.get("notifications"), Mapping):
        addresses = wanted.get("resourceSubscriptions")
        if isinstance(addresses, list):
            check_subscriptions(addresses)
            yield from addresses


def _beyond(what: str, most: int, unit: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"{what} may have {most:,} {unit} at most: send fewer")
