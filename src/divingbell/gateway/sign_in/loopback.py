"""The loopback address that the browser comes back to after a sign-in."""

import asyncio
import contextlib
import hmac
import re
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult, OAuthFlowError

MAX_REQUEST = 16 << 10
REQUEST_TIMEOUT = 10.0
_PAGE = """HTTP/1.1 {status}\r
Content-Type: text/html; charset=utf-8\r
Content-Length: {size}\r
Connection: close\r
Referrer-Policy: no-referrer\r
\r
{body}"""


class Loopback:
    """A listener on 127.0.0.1 for the one request that carries the right state."""

    def __init__(self) -> None:
        self.port = 0
        self._state = ""
        self._arrived: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/callback"

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, port: int = 0) -> AsyncIterator[Self]:
        """Listen for as long as the block lasts, on this port if it is free."""
        loopback = cls()
        try:
            server = await asyncio.start_server(
                loopback._serve, "127.0.0.1", port, limit=MAX_REQUEST
            )
        except OSError:
            server = await asyncio.start_server(loopback._serve, "127.0.0.1", 0, limit=MAX_REQUEST)
        loopback.port = server.sockets[0].getsockname()[1]
        async with server:
            try:
                yield loopback
            finally:
                loopback._arrived.cancel()

    def expect(self, state: str) -> None:
        """Take only the answer to this question: any page can send a browser here."""
        self._state = state

    async def answer(self) -> AuthorizationCodeResult:
        """Return what the browser brought.

        Raises:
            OAuthFlowError: the person declined.
        """
        return await asyncio.shield(self._arrived)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
                status, words = self._take(head)
                body = f"<!doctype html><title>Divingbell</title><p>{words}</p>"
                page = _PAGE.format(status=status, size=len(body.encode()), body=body)
                writer.write(page.encode())
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _take(self, head: bytes) -> tuple[str, str]:
        method, _, rest = head.decode("latin-1").partition(" ")
        parts = urlsplit(rest.split(" ", 1)[0])
        given = parse_qs(parts.query)
        values = {name: value[0] for name, value in given.items()}
        state = values.get("state", "")
        right = bool(self._state) and hmac.compare_digest(state.encode(), self._state.encode())
        right &= all(len(value) == 1 for value in given.values())  # RFC 6749: each comes once
        if method != "GET" or parts.path != "/callback" or not right or self._arrived.done():
            return "404 Not Found", "There is nothing here."
        if "code" not in values:
            reason = re.sub(r"[^\w -]", "", values.get("error", "no reason"))
            self._arrived.set_exception(OAuthFlowError(f"the sign-in was refused: {reason[:100]}"))
            return "200 OK", "You are not signed in. You can close this page."
        self._arrived.set_result(
            AuthorizationCodeResult(code=values["code"], state=state, iss=values.get("iss"))
        )
        return "200 OK", "You are signed in. You can close this page."
