"""Login: a token becomes a cookie, which no script can read, and which ends with the token."""

from typing import Annotated

from msgspec import Meta
from starlette.types import Receive, Scope, Send

from divingbell.surfaces.http.answers import nothing
from divingbell.surfaces.http.guard import cookie_name, cookie_of
from divingbell.surfaces.http.logins import LIFETIME
from divingbell.surfaces.http.operations import Call, read
from divingbell.surfaces.http.problems import Refused
from divingbell.surfaces.http.service import Service
from divingbell.surfaces.http.wire import Given, Nothing

MAX_BODY = 4 << 10
"""Bytes of a body here, which is read before anybody has shown a token."""


class LoginGiven(Given):
    """A token."""

    token: Annotated[str, Meta(max_length=1000)]


class Login:
    """Gives a cookie to whoever has a token. An application."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(self._service, scope, receive)
        given = await read(call, LoginGiven, MAX_BODY)
        door = self._service.door
        if door.tokens is not None:
            if door.tokens.grant_of(given.token) is None:
                words = "the token is wrong, has expired or was revoked: ask for another"
                raise Refused(401, "unauthorized", words)
            value = door.logins.begin(given.token, over_tls=_is_over_tls(call))
            await nothing({"Set-Cookie": _cookie(call, value, LIFETIME)})(scope, receive, send)
            return
        await nothing()(scope, receive, send)


class Logout:
    """Ends what a cookie is good for. An application."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(self._service, scope, receive)
        await read(call, Nothing, MAX_BODY)
        if (value := cookie_of(scope)) is not None:
            self._service.door.logins.end(value)
        await nothing({"Set-Cookie": _cookie(call, "", 0)})(scope, receive, send)


def _is_over_tls(call: Call) -> bool:
    # A proxy that ends TLS speaks plainly to us; the page's own origin says how it was reached.
    return call.scope["scheme"] == "https" or (call.header(b"origin") or "").startswith("https:")


def _cookie(call: Call, value: str, lifetime: float) -> str:
    return (
        f"{cookie_name(call.scope)}={value}; Path=/; Max-Age={int(lifetime)}; HttpOnly; "
        f"SameSite=Strict{'; Secure' if _is_over_tls(call) else ''}"
    )
