"""Who is calling: what a request says about that, in both eras and over both transports."""

from dataclasses import dataclass
from typing import Any, TypeVar

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

Context = ServerRequestContext[Any, Any]
STDIO = "stdio"
MAX_REMEMBERED = 1_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """A client: its sessions are its own."""

    user: str | None
    """The name of the token that it came with; None where no token is asked for."""
    connection: str
    """What keeps one client from another of the same user: stdio, the older protocol's HTTP
    session, or nothing, where a user has no connections any more."""


class Remembered(dict[Caller, T]):
    """Something about each caller. The oldest are forgotten: connections may go without a word."""

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, caller: Caller, value: T) -> None:
        super().__setitem__(caller, value)
        while len(self) > self._most:
            del self[next(iter(self))]

    def leave(self, connection: str) -> None:
        """A connection has ended."""
        for caller in [caller for caller in self if caller.connection == connection]:
            del self[caller]


def caller_of(ctx: Context) -> Caller:
    """Return who sent the request."""
    request = ctx.request
    if not isinstance(request, Request):
        return Caller(None, STDIO)
    user = request.scope.get("user")
    name = user.access_token.client_id if isinstance(user, AuthenticatedUser) else None
    if is_modern(ctx):
        # Such a request belongs to no session of the protocol, whatever its headers say.
        return Caller(name, "")
    return Caller(name, request.headers.get(MCP_SESSION_ID_HEADER, ""))


def user_at_the_door() -> str | None:
    """Return whose token came with the HTTP request that this task answers, if one did."""
    token = get_access_token()
    return None if token is None else token.client_id


def is_modern(ctx: Context) -> bool:
    """Whether the request is of the era in which servers do not send requests."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
