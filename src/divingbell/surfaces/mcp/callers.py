"""Callers: the principal of a request, in both eras and over both transports."""

import secrets
from typing import Any, TypeVar

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from divingbell.host.login import login_name
from divingbell.principal import Principal

Context = ServerRequestContext[Any, Any]
STDIO, HTTP = "stdio", "http"
LOGIN = login_name()
"""The user where no token names one: who runs the server."""
OVER_STDIO = Principal(LOGIN, f"{STDIO}-{secrets.token_hex(8)}", STDIO)
"""The one client of this process. Another process has another: what is kept of the one, such as its
tokens, means nothing to the other."""
MAX_REMEMBERED = 1_000
T = TypeVar("T")


class Remembered(dict[Principal, T]):
    """Something about each principal. The oldest are forgotten: some go without a word."""

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, principal: Principal, value: T) -> None:
        super().__setitem__(principal, value)
        while len(self) > self._most:
            del self[next(iter(self))]

    def leave(self, connection: str) -> None:
        """Forget a connection that has ended."""
        for gone in [each for each in self if each.conversation == connection]:
            del self[gone]


def principal_of(ctx: Context) -> Principal:
    """Return the principal of a request. A connection is a conversation; where there are none any
    more, all that a user sends is one."""
    request = ctx.request
    if not isinstance(request, Request):
        return OVER_STDIO
    user = request.scope.get("user")
    name = user.access_token.client_id if isinstance(user, AuthenticatedUser) else LOGIN
    if is_modern(ctx):
        # Such a request belongs to no session of the protocol, whatever its headers say.
        return Principal(name, "", HTTP)
    return Principal(name, request.headers.get(MCP_SESSION_ID_HEADER, ""), HTTP)


def user_of_request() -> str:
    """Return the user of the request that this task answers: as its token says, if it has one."""
    token = get_access_token()
    return LOGIN if token is None else token.client_id


def is_modern(ctx: Context) -> bool:
    """Whether the request is of the era in which servers do not send requests."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
