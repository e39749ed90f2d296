"""A Divingbell that runs elsewhere, in the library's own words."""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack
from urllib.parse import quote

from divingbell.client import answers
from divingbell.client.connection import Connection
from divingbell.client.session import Session, request
from divingbell.errors import ConfigError, SessionClosed
from divingbell.models import Result, SessionLimits

URL, TOKEN = "DIVINGBELL_URL", "DIVINGBELL_TOKEN"


class Divingbell:
    """A service that `divingbell serve --http` runs: `async with Divingbell(url, token) as bell: …`

    Without arguments the address and the token are those of `DIVINGBELL_URL` and
    `DIVINGBELL_TOKEN`.
    """

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        """Take an address such as http://localhost:8642; nothing is sent yet.

        Raises:
            ConfigError: there is no address.
        """
        url = url or os.environ.get(URL)
        if not url:
            raise ConfigError(f"no service is named: pass its address, or set {URL}")
        self._url = url
        self._connection = Connection(url, token or os.environ.get(TOKEN) or None)

    async def __aenter__(self) -> Self:
        """Ask the service who we are, so that a wrong address or token is told at once.

        Raises:
            ServiceUnreachable: it does not answer.
            ServiceRefused: it does not take the token.
        """
        try:
            await self._connection.json("GET", "/me")
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connections; sessions that were opened go on. May be called again."""
        await self._connection.close()

    @contextlib.asynccontextmanager
    async def session(
        self,
        id: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        idle_timeout: float | None = None,
        **limits: Unpack[SessionLimits],
    ) -> AsyncIterator[Session]:
        """Open a session, or join the one that this user has open under this id.

        Leaving the block ends the session that it has opened; one that it has joined goes on.
        """
        session, opened = await self._open(id, env, labels, idle_timeout, limits)
        try:
            yield session
        finally:
            if opened:
                with contextlib.suppress(SessionClosed):
                    await session.close()

    async def open(
        self,
        id: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        idle_timeout: float | None = None,
        **limits: Unpack[SessionLimits],
    ) -> Session:
        """Open a session as `session` does, for those who can't keep a block; see its `close`."""
        return (await self._open(id, env, labels, idle_timeout, limits))[0]

    async def _open(
        self,
        id: str | None,
        env: Mapping[str, str] | None,
        labels: Mapping[str, str] | None,
        idle_timeout: float | None,
        limits: Mapping[str, Any],
    ) -> tuple[Session, bool]:
        """Return a session, and whether it is new."""
        asked = {
            "id": id,
            "env": None if env is None else dict(env),
            "labels": None if labels is None else dict(labels),
            "idle_timeout": idle_timeout,
            "limits": dict(limits) or None,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        response = await self._connection.send("POST", "/sessions", json=given)
        return Session(self._connection, response.json()), response.status_code == 201

    async def execute(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        **limits: Unpack[SessionLimits],
    ) -> Result:
        """Run code once, in a fresh session that ends with it."""
        asked = request(code, None, context, argv)
        if limits:
            asked["limits"] = dict(limits)
        return answers.result(await self._connection.json("POST", "/execute", json=asked))

    async def get(self, id: str) -> Session | None:
        """Return the session that this user has open under this id, None if there is none."""
        try:
            about = await self._connection.json("GET", f"/sessions/{quote(id, safe='')}")
        except SessionClosed:
            return None
        return Session(self._connection, about)

    async def sessions(self) -> list[Session]:
        """Return the sessions of this user that are open now."""
        found = self._connection.items("/sessions")
        return [Session(self._connection, about) async for about in found]

    def __repr__(self) -> str:
        return f"<Divingbell at {self._url}>"
