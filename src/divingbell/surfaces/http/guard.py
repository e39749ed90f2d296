"""The guard: stands before every route. Host, Origin, who comes, how much they have under way.

What a visitor may do is compared by `visitor.check`: each route names the scope that it takes.
"""

import itertools
import secrets
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from divingbell.surfaces.auth import PRIVATE, Tokens, digest_of
from divingbell.surfaces.http import quotas, visitor
from divingbell.surfaces.http.connections import Connections
from divingbell.surfaces.http.logins import Logins
from divingbell.surfaces.http.problems import COUNT, Refused, count
from divingbell.surfaces.http.quotas import Gone
from divingbell.surfaces.http.visitor import EVERYBODY, By, Visitor

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
JUPYTER = "/jupyter/"
"""Below this its clients' ways to give a token are taken, too."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
NEARBY = frozenset({b"same-origin", b"none"})
"""What browsers say in Sec-Fetch-Site of our own page, and of an address that somebody typed."""
MAX_TOKEN = 1_000
"""Characters of a token, or of a cookie, that are looked at."""
_LOOKED_AT = frozenset({b"host", b"origin", b"authorization", b"cookie", b"sec-fetch-site"})
_NOT_A_NAME = Refused(
    421,
    "wrong_host",
    "this is no name that the server is known by: use its address, or start it with --allow-host",
)


@dataclass(frozen=True)
class Door:
    """What the guard knows: who has a token, by which names the server is spoken to, and which
    paths are open to all."""

    tokens: Tokens | None
    """Without any, everybody is let in."""
    hosts: tuple[str, ...] = ()
    """Names besides those of this machine: a web page that has its own name point here is
    refused."""
    open_paths: frozenset[str] = frozenset()
    open_below: tuple[str, ...] = ()
    connections: Connections = field(default_factory=Connections)
    logins: Logins = field(default_factory=Logins)
    shares: quotas.Shares = field(default_factory=quotas.shares)
    count: Callable[[str], None] | None = None
    """Told the code of every refusal."""
    private: frozenset[str] | None = None
    """The users from whose models personal data is kept; None where that is so for all."""

    def is_open(self, path: str) -> bool:
        """Whether a path is answered without a token."""
        return path in self.open_paths or path.startswith(self.open_below)


class Guard:
    """Lets requests in, or refuses them, before any route sees them. A plain ASGI application."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door
        self._names = frozenset(name.lower() for name in (*LOOPBACK, *door.hosts))
        self._behind_proxy = frozenset(name.lower() for name in door.hosts)
        # Told to clients and in the log: nobody can guess another's, and each is another.
        self._prefix, self._numbers = secrets.token_hex(4), itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        identifier = f"{self._prefix}-{next(self._numbers):x}"
        scope["divingbell.request"] = identifier
        if self._door.count is not None:
            scope[COUNT] = self._door.count
        send = _naming(quotas.in_pieces(send), identifier.encode())
        try:
            visiting = self._let_in(scope)
            scope[visitor.KEY] = visiting
            # Strangers are as many as have connections. A share for all of them together would let
            # some keep the others out, and who asks whether the server lives.
            share = quotas.Share() if visiting is None else self._door.shares[visiting.user]
            scope[quotas.KEY] = share
            with share.request():
                await self._app(scope, receive, send)
        except Gone:
            return
        except Refused as refusal:
            await _refuse(refusal, scope, receive, send)

    def _let_in(self, scope: Scope) -> Visitor | None:
        """Return who comes; None for a stranger, at a path that is open to all.

        Raises:
            Refused: whoever it is must not come in.
        """
        headers = _headers(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if _without_port(host) not in self._names:
            raise _NOT_A_NAME
        visiting = self._visitor(scope, headers)
        self._check_origin(scope, headers, host, visiting)
        self._check_private(visiting)
        if visiting is None:
            if not self._door.is_open(scope["path"]):
                raise _no_token(given=b"authorization" in headers)
            return None
        self._door.connections.left(scope.get("client"))
        return visiting

    def _visitor(self, scope: Scope, headers: dict[bytes, bytes]) -> Visitor | None:
        if self._door.tokens is None:
            return EVERYBODY
        token = _token(scope, headers)
        if token is not None:
            again = partial(self._by_token, self._door.tokens, digest_of(token))
        else:
            cookie = _cookie(headers, cookie_name(scope))
            again = partial(self._by_cookie, self._door.tokens, cookie)
        scope[visitor.AGAIN] = again
        return again()

    def _by_token(self, tokens: Tokens, digest: bytes, by: By = "token") -> Visitor | None:
        grant = tokens.grant_by_digest(digest)
        return None if grant is None else Visitor.of(grant, by)

    def _by_cookie(self, tokens: Tokens, cookie: str | None) -> Visitor | None:
        login = None if cookie is None else self._door.logins.of(cookie)
        if login is None:
            return None
        return self._by_token(tokens, login.token, "tls_cookie" if login.over_tls else "cookie")

    def _check_private(self, visiting: Visitor | None) -> None:
        """Refuse a token that asks for more than this server was started with."""
        private = self._door.private
        if visiting is None or private is None or PRIVATE not in visiting.scopes:
            return
        if visiting.user not in private:
            raise Refused(
                403,
                "not_private",
                f"personal data of {visiting.user} would be shown here: the scope private of this "
                "token counts once the server is started again",
            )

    def _check_origin(
        self, scope: Scope, headers: dict[bytes, bytes], host: str, visiting: Visitor | None
    ) -> None:
        """Refuse what a web page of somebody else sends.

        A page that has the token is trusted like any program, as long as it is of this machine or
        of a name of ours. Whatever a browser adds by itself needs exactly our own origin: cookies
        know no ports.
        """
        given = headers.get(b"origin")
        if visiting is not None and visiting.by == "token":
            if given is not None and not self._is_of_a_name(given.decode("latin-1")):
                raise _wrong_origin()
            return
        is_unsafe = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
        if given is None:
            if is_unsafe and visiting is not None and visiting.by != "open":
                raise _wrong_origin()
        elif given.decode("latin-1").lower() not in self._own_origins(scope, host, visiting):
            raise _wrong_origin()
        is_near = headers.get(b"sec-fetch-site", b"none") in NEARBY
        if not is_near and not self._door.is_open(scope["path"]):
            raise _wrong_origin()

    def _is_of_a_name(self, origin: str) -> bool:
        scheme, _, place = origin.partition("://")
        return scheme in ("http", "https") and _without_port(place.lower()) in self._names

    def _own_origins(self, scope: Scope, host: str, visiting: Visitor | None) -> tuple[str, ...]:
        scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
        if _without_port(host) not in self._behind_proxy:
            return (f"{scheme}://{host}",)
        # A proxy that ends TLS speaks plainly to us, for a name that we were given. Who has signed
        # in over TLS is not spoken for by a page of that name that came without: anybody on the
        # way may have made it.
        if visiting is not None and visiting.by == "tls_cookie":
            return (f"https://{host}",)
        return (f"{scheme}://{host}", f"https://{host}")


def cookie_name(scope: Scope) -> str:
    """Return the name of the console's cookie. Cookies know no ports: the name has ours."""
    server = scope.get("server")
    return f"divingbell_{server[1] if server else 0}"


def cookie_of(scope: Scope) -> str | None:
    """Return the value of the console's cookie that came with a request."""
    return _cookie(_headers(scope["headers"]), cookie_name(scope))


def _headers(found: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the headers that the guard looks at.

    Raises:
        Refused: one of them stands there twice, and nobody knows which one others go by.
    """
    headers: dict[bytes, bytes] = {}
    for name, value in found:
        if name in _LOOKED_AT:
            if name in headers and name != b"cookie":
                raise Refused(400, "bad_request", f"the header {name.decode()} is there twice")
            headers[name] = value
    return headers


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


def _token(scope: Scope, headers: dict[bytes, bytes]) -> str | None:
    """Return the token that is given; None where none is."""
    given = headers.get(b"authorization")
    at_jupyter = scope["path"].startswith(JUPYTER)
    if given is not None:
        kind, _, token = given.decode("latin-1").partition(" ")
        taken = ("bearer", "token") if at_jupyter else ("bearer",)
        return token.strip()[:MAX_TOKEN] if kind.lower() in taken else ""
    if at_jupyter and b"token=" in scope["query_string"]:
        query = scope["query_string"].decode("latin-1")
        values = parse_qs(query, max_num_fields=100).get("token", [])
        return values[0][:MAX_TOKEN] if len(values) == 1 else ""
    return None


def _cookie(headers: dict[bytes, bytes], name: str) -> str | None:
    given = headers.get(b"cookie")
    if given is None or name.encode() not in given:
        return None
    try:
        found = SimpleCookie(given.decode("latin-1")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value[:MAX_TOKEN]


def _no_token(*, given: bool) -> Refused:
    error = 'Bearer error="invalid_token"' if given else 'Bearer realm="divingbell"'
    words = (
        "the token is wrong, has expired or was revoked: ask whoever runs the server for another"
        if given
        else "a token is needed: send it as `Authorization: Bearer TOKEN`"
    )
    return Refused(401, "unauthorized", words, {"WWW-Authenticate": error})


def _wrong_origin() -> Refused:
    return Refused(
        403, "wrong_origin", "a web page of another origin has sent this: it is not let in"
    )


async def _refuse(refusal: Refused, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        count(scope, refusal.code)
        await receive()  # its opening
        await send({"type": "websocket.close", "code": 1008, "reason": str(refusal)[:100]})
        return
    await refusal(scope, receive, send)


def _naming(send: Send, identifier: bytes) -> Send:
    """Return what adds the request's name to its answer."""

    def sent(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", identifier)]
        return send(message)

    return sent
