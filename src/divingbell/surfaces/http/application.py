"""The application: every route of one server, behind one guard."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, closing
from typing import Any

import msgspec
from mcp.server.lowlevel import Server
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from divingbell.app import Divingbell
from divingbell.settings.config import Settings
from divingbell.surfaces.auth import ScopeWord, Tokens
from divingbell.surfaces.http import openapi, visitor
from divingbell.surfaces.http.answers import JSON, Answer, as_json
from divingbell.surfaces.http.api import (
    approvals,
    audit,
    conversations,
    events,
    executions,
    files,
    ledger,
    me,
    sessions,
    skills,
    tools,
)
from divingbell.surfaces.http.console import routes as console
from divingbell.surfaces.http.conversations import MakeModel
from divingbell.surfaces.http.guard import Door, Guard
from divingbell.surfaces.http.jupyter.kernels import Kernels
from divingbell.surfaces.http.jupyter.routes import JupyterRoutes
from divingbell.surfaces.http.operations import Operation, routes
from divingbell.surfaces.http.problems import AGAIN, Refused
from divingbell.surfaces.http.queue import Queue, Room
from divingbell.surfaces.http.quotas import MAX_BODY, Body, share_of
from divingbell.surfaces.http.service import Service
from divingbell.surfaces.mcp.endpoint import PATH, Endpoint, user_for_sdk
from divingbell.surfaces.mcp.limits import MAX_OPENING
from divingbell.surfaces.mcp.openings import opens_connection
from divingbell.surfaces.mcp.replicas import Replicas
from divingbell.surfaces.mcp.server import Surface

OPERATIONS: tuple[Operation, ...] = (
    *executions.OPERATIONS,
    *sessions.OPERATIONS,
    *files.OPERATIONS,
    *tools.OPERATIONS,
    *approvals.OPERATIONS,
    *events.OPERATIONS,
    *ledger.OPERATIONS,
    *audit.OPERATIONS,
    *skills.OPERATIONS,
    *conversations.OPERATIONS,
    *me.OPERATIONS,
)
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"}) | console.OPEN_PATHS
"""What is answered without a token."""
_OPENING = (
    f"a request that opens a connection may have {MAX_OPENING:,} bytes at most: send less about "
    "the client, or name your connection (Mcp-Session-Id)"
)


class Application:
    """One server's answers to all that comes over HTTP: a plain ASGI application."""

    def __init__(self, router: Router, door: Door, service: Service | None = None) -> None:
        self.door = door
        self._service = service
        self._app: ASGIApp = Guard(router, door)

    async def drain(self) -> None:
        """Begin nothing new, and wait for what runs, as long as the settings say."""
        if self._service is not None:
            await self._service.drain()

    def put_within(self, around: Callable[[ASGIApp], ASGIApp]) -> None:
        """Have all requests pass another application first."""
        self._app = around(self._app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def application(
    bell: Divingbell,
    tokens: Tokens | None,
    hosts: tuple[str, ...] = (),
    make_model: MakeModel | None = None,
) -> Application:
    """Return the application of a Divingbell, for uvicorn or to be mounted in another one.

    Without tokens everybody is let in. `hosts` are the names under which it may be spoken to,
    besides those of this machine. `make_model` makes the model of conversations, in the place of
    the settings.
    """

    def count(code: str) -> None:
        if bell.metrics is not None:
            bell.metrics.answered(code)

    private = _private_users(bell.settings)
    door = Door(tokens, hosts, OPEN_PATHS, console.OPEN_BELOW, count=count, private=private)
    service = Service.of(bell, door, make_model)
    endpoint = Endpoint.of(bell, len(tokens or ()), service.queue.turn)
    kernels = Kernels(bell, service.queue)
    found: list[BaseRoute] = [
        *routes(service, OPERATIONS),
        *console.routes(service),
        Route(PATH, Scoped("run", Weighed(endpoint))),
        *JupyterRoutes(kernels).routes(),
        Route("/healthz", Healthy()),
        Route("/readyz", Ready(service)),
        Route("/metrics", Scoped("metrics", MetricsText(service))),
        Route("/openapi.json", Described(OPERATIONS)),
    ]
    running = endpoint.running(), service.running(), kernels.running()
    return Application(_router(found, *running), door, service)


def _private_users(settings: Settings) -> frozenset[str] | None:
    """Return the users from whose models personal data is kept; None where that is so for all."""
    return None if settings.privacy == "personal" else frozenset(settings.privacy_rules.users)


def mcp_application(
    bell: Divingbell,
    tokens: Tokens | None,
    hosts: tuple[str, ...],
    replicas: Replicas,
    around: Callable[[ASGIApp], ASGIApp],
) -> tuple[Application, Surface]:
    """Return the MCP endpoint of a Divingbell as an application of its own, one of several replicas
    that serve the same users; and what answers there. `around` is put within the guard."""
    given = bell.settings.service
    queue = Queue(Room(given.cells, given.cells_of_user, given.waiting, given.waiting_of_user))
    endpoint = Endpoint.of(bell, len(tokens or ()), queue.turn, replicas)
    assert endpoint.surface is not None
    private = _private_users(bell.settings)
    door = Door(tokens, hosts, frozenset({"/healthz"}), private=private)
    found = [
        Route(PATH, Scoped("run", Weighed(around(endpoint)))),
        Route("/healthz", Healthy()),
    ]
    return Application(_router(found, endpoint.running()), door), endpoint.surface


def application_of(
    server: Server[Any],
    tokens: Tokens | None,
    hosts: tuple[str, ...] = (),
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> Application:
    """Return the application of any MCP server that keeps nothing for its clients."""
    endpoint = Endpoint.of_server(server)
    found = [Route(PATH, Scoped("run", Weighed(around(endpoint))))]
    return Application(_router(found, endpoint.running()), Door(tokens, hosts))


def _router(found: list[Any], *running: AbstractAsyncContextManager[None]) -> Router:
    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in running:
                await stack.enter_async_context(each)
            yield

    router = Router(found, redirect_slashes=False, lifespan=lifespan)
    router.default = _not_there
    return router


async def _not_there(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    await Refused(404, "not_found", "there is nothing at this address")(scope, receive, send)


class Healthy:
    """Says that the server lives."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await as_json({"status": "ok"})(scope, receive, send)


class Ready:
    """Says whether code can be run: not before the sandbox is up, and not while it ends."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._service.is_ready():
            await as_json({"status": "ready"})(scope, receive, send)
            return
        await Refused(503, "not_ready", "no code can be run now: try again soon").retry_after(
            AGAIN
        )(scope, receive, send)


class MetricsText:
    """Counts, for a monitor."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        metrics = self._service.bell.metrics
        if metrics is None:
            raise Refused(404, "not_found", 'no metrics are kept: set metrics = "on"')
        text = await metrics.render()
        await Answer(text, media_type=metrics.content_type)(scope, receive, send)


class Described:
    """The description of the API."""

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self._body = msgspec.json.encode(openapi.description(operations))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Answer(self._body, media_type=JSON)(scope, receive, send)


class Scoped:
    """Lets those in who have a scope."""

    def __init__(self, need: ScopeWord, app: Any) -> None:
        self._need = need
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor.check(scope, self._need)
        await self._app(scope, receive, send)


class Weighed:
    """Hands requests to the MCP SDK: with who comes as it knows them, and their bodies weighed as
    they come."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visiting = scope[visitor.KEY]
        if visiting.by != "open":
            scope["user"] = user_for_sdk(visiting.user)
        opens = opens_connection(scope)
        most, why = (MAX_OPENING, _OPENING) if opens else (MAX_BODY, "")
        held = _Held(scope, receive, send)
        with closing(Body(held.receive, share_of(scope).bodies, most, why)) as body:
            await self._app(scope, body.receive, held.send)


class _Held:
    """A request for as long as its token holds. What would be streamed after that is told nobody:
    the stream ends, and for the SDK its client has left."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_whole = False
        """Whether all of the request has come: then only the end is waited for."""
        self._over = asyncio.Event()

    async def receive(self) -> Message:
        """Return the next part of the request, or its end."""
        if not self._is_whole:
            message = await self._receive()
            self._is_whole = not message.get("more_body", False)
            return message
        waiting = asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return waiting[0].result() if waiting[0].done() else {"type": "http.disconnect"}
        finally:
            for each in waiting:
                each.cancel()

    async def send(self, message: Message) -> None:
        """Send a part of the answer, if it still may be told."""
        if self._over.is_set():
            return
        if message.get("more_body") and not visitor.holds(self._scope):
            self._over.set()
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)
