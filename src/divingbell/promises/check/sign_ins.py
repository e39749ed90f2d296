"""Signing in at remote servers: who is asked, and who gets the secrets."""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import httpx2

from divingbell.errors import ToolFailed
from divingbell.promises.check.rig import CheckRig, checks, expect
from divingbell.settings.servers import OAuth, Server

SECRET = "promise-client-secret"
TOKEN = "promise-access-token"
_PATIENCE = 10.0


@dataclass
class Place:
    """A web server on a port of its own. It keeps what it is asked, and answers what it is told."""

    answers: dict[str, Any] = field(default_factory=dict)
    """JSON by path; what is not there is 401 with `challenge`."""
    challenge: str = "Bearer"
    asked: list[str] = field(default_factory=list)
    """Each request with its body."""
    origin: str = ""

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls) -> AsyncIterator[Self]:
        place = cls()
        server = await asyncio.start_server(place._serve, "127.0.0.1", 0)
        place.origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield place

    def paths(self) -> list[str]:
        return [request.split(" ", 2)[1] for request in self.asked]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lengths = [line for line in head.lower().split("\r\n") if line.startswith("content-le")]
            size = int(lengths[0].partition(":")[2]) if lengths else 0
            self.asked.append(head + (await reader.readexactly(size)).decode("latin-1"))
            found = self.answers.get(urlsplit(head.split(" ", 2)[1]).path)
            status = "401 Unauthorized" if found is None else "200 OK"
            body = json.dumps(found or {})
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
                f"WWW-Authenticate: {self.challenge}\r\nContent-Length: {len(body)}\r\n\r\n"
                f"{body}".encode()
            )
            await writer.drain()
        writer.close()

    def publish(self, issuer: str, **endpoints: str) -> None:
        """Say where to sign in, as RFC 9728 and RFC 8414 have it."""
        self.answers["/.well-known/oauth-protected-resource/mcp"] = {
            "resource": f"{self.origin}/mcp",
            "authorization_servers": [issuer],
        }
        self.answers["/.well-known/oauth-authorization-server"] = {
            "issuer": issuer,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            **endpoints,
        }
        self.answers["/register"] = {"client_id": "registered", "redirect_uris": []}
        self.answers["/token"] = {"access_token": "given", "token_type": "Bearer"}


async def sign_in(server: Server, folder: Path) -> str:
    """Sign in as a person would who allows everything; return why it failed, or nothing."""
    from divingbell.gateway.sign_in.issuer import SignIn
    from divingbell.gateway.sign_in.oauth import Credentials, login

    clicks: list[asyncio.Task[Any]] = []

    async def click(url: str) -> None:
        asked = {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
        async with httpx2.AsyncClient() as browser:
            answer = {"code": "the-code", "state": asked["state"]}
            await browser.get(asked["redirect_uri"], params=answer)

    def tell(told: SignIn) -> None:
        clicks.append(asyncio.ensure_future(click(told.url)))

    try:
        await login(
            server, tell, credentials=Credentials(folder), open_browser=False, timeout=_PATIENCE
        )
    except ToolFailed as error:
        return str(error)
    finally:
        await asyncio.gather(*clicks, return_exceptions=True)
    return ""


@contextlib.asynccontextmanager
async def _stage() -> AsyncIterator[tuple[Place, Place, Path]]:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as folder:
        async with Place.open() as hostile, Place.open() as other:
            yield hostile, other, Path(folder)


@checks("T80")
async def mixed_up_sign_ins(rig: CheckRig) -> str:
    async with _stage() as (hostile, provider, folder):
        provider.publish(provider.origin)
        server = Server("hostile", url=f"{hostile.origin}/mcp", transport="http", oauth=OAuth())
        ours = OAuth(client_id="us", client_secret=SECRET, issuer=provider.origin)
        known = Server("known", url=f"{hostile.origin}/mcp", transport="http", oauth=ours)
        page = f"{provider.origin}/authorize"
        attempts: list[tuple[Server, Callable[[], None]]] = [
            (server, lambda: hostile.publish(hostile.origin, authorization_endpoint=page)),
            (server, lambda: hostile.publish(provider.origin)),
            (known, lambda: hostile.publish(hostile.origin, authorization_endpoint=page)),
            (known, hostile.answers.clear),
        ]
        words = []
        for entry, prepare in attempts:
            prepare()
            words.append(await sign_in(entry, folder))
        stolen = [said for said in hostile.asked if "the-code" in said or SECRET in said]
        expect(not stolen, f"the hostile server got {stolen[:1]}")
        expect("not at its issuer" in words[0], f"the mix-up was not noticed: {words}")
    return "refused before a browser opens; neither code nor verifier nor secret has left"


@checks("T81")
async def unattended_sign_ins(rig: CheckRig) -> str:
    from divingbell.gateway.sign_in.oauth import Credentials
    from divingbell.gateway.upstream.upstream import Upstream

    async with _stage() as (hostile, inside, folder):
        server = Server("hostile", url=f"{hostile.origin}/mcp", transport="http", oauth=OAuth())
        credentials = Credentials(folder)
        tokens = {"access_token": TOKEN, "token_type": "Bearer"}
        path = credentials.path(server)
        path.write_text(json.dumps({"server": server.address, "issuer": None, "tokens": tokens}))
        hostile.publish(inside.origin)
        hostile.challenge = f'Bearer resource_metadata="{inside.origin}/metadata"'
        upstream = Upstream(
            server, on_tools=lambda _: None, log_folder=folder, credentials=credentials
        )
        upstream.start(lazy=False)
        try:
            reason = await _failed(upstream)
        finally:
            await upstream.stop()
        expect(any(TOKEN in said for said in hostile.asked), "the token was not tried")
        expect(not inside.asked, f"asked at an address that the server named: {inside.paths()}")
        expect(set(hostile.paths()) == {"/mcp"}, f"looked up or registered: {hostile.paths()}")
        expect("sign in again" in reason, f"nobody was told: {reason}")
    return "nothing is looked up or registered; the person is told to sign in again"


async def _failed(upstream: Any) -> str:
    deadline = time.monotonic() + _PATIENCE
    while not upstream.reason:
        expect(time.monotonic() < deadline, "it did not fail")
        await asyncio.sleep(0.02)
    return str(upstream.reason)
