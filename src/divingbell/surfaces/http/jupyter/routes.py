"""Routes: the addresses of Jupyter's API that its clients need for kernels."""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from divingbell.errors import DivingbellError
from divingbell.principal import Principal
from divingbell.surfaces.auth import ScopeWord
from divingbell.surfaces.http import quotas, visitor
from divingbell.surfaces.http.answers import Answer, as_json, nothing
from divingbell.surfaces.http.jupyter import replies
from divingbell.surfaces.http.jupyter.connection import Connection
from divingbell.surfaces.http.jupyter.framing import framing_of
from divingbell.surfaces.http.jupyter.kernel import MAX_CLIENTS, Kernel
from divingbell.surfaces.http.jupyter.kernels import Kernels
from divingbell.surfaces.http.jupyter.notebooks import (
    KernelWish,
    Notebook,
    Notebooks,
    NotebookWish,
)
from divingbell.surfaces.http.operations import parsed
from divingbell.surfaces.http.problems import Refused, missing, of_error
from divingbell.surfaces.http.visitor import Visitor

PATH = "/jupyter"
MAX_BODY = 1 << 20
"""Bytes of a request: a client sends its environment along, of which nothing is used."""
Wish = TypeVar("Wish", KernelWish, NotebookWish)
Handler = Callable[[Request], Awaitable[Answer]]


class JupyterRoutes:
    """The handlers, for the kernels of all users."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._notebooks = Notebooks(kernels)

    def routes(self) -> list[BaseRoute]:
        """Return the routes, to be put into an application behind the guard."""
        api = f"{PATH}/api"
        one, notebook = f"{api}/kernels/{{kernel}}", f"{api}/sessions/{{notebook}}"
        found: list[tuple[str, str, ScopeWord, Handler]] = [
            ("GET", api, "read", self._version),
            ("GET", f"{api}/kernelspecs", "read", self._specs),
            ("GET", f"{api}/kernelspecs/{{name}}", "read", self._spec),
            ("GET", f"{api}/kernels", "read", self._list),
            ("POST", f"{api}/kernels", "run", self._create),
            ("GET", one, "read", self._get),
            ("DELETE", one, "run", self._delete),
            ("POST", f"{one}/interrupt", "run", self._interrupt),
            ("POST", f"{one}/restart", "run", self._restart),
            ("GET", f"{api}/sessions", "read", self._notebooks_open),
            ("POST", f"{api}/sessions", "run", self._open_notebook),
            ("GET", notebook, "read", self._notebook),
            ("PATCH", notebook, "run", self._change_notebook),
            ("DELETE", notebook, "run", self._close_notebook),
        ]
        handled = [
            Route(path, _guarded(handle, scope), methods=[method])
            for method, path, scope, handle in found
        ]
        return [*handled, WebSocketRoute(f"{one}/channels", self._channels)]

    async def _version(self, request: Request) -> Answer:
        return as_json({"version": replies.OUR_VERSION})

    async def _specs(self, request: Request) -> Answer:
        spec = replies.kernel_spec()
        return as_json({"default": replies.KERNEL, "kernelspecs": {replies.KERNEL: spec}})

    async def _spec(self, request: Request) -> Answer:
        if request.path_params["name"] != replies.KERNEL:
            raise missing("kernel spec", request.path_params["name"])
        return as_json(replies.kernel_spec())

    async def _list(self, request: Request) -> Answer:
        return as_json([kernel.model() for kernel in self._kernels.of(_principal(request))])

    async def _create(self, request: Request) -> Answer:
        # A path and an environment may come with it; neither is used.
        kernel = await self._new_kernel(request, await _body(request, KernelWish))
        address = f"{PATH}/api/kernels/{kernel.name}"
        return as_json(kernel.model(), 201, {"Location": address})

    async def _get(self, request: Request) -> Answer:
        return as_json(self._kernel(request).model())

    async def _delete(self, request: Request) -> Answer:
        kernel = self._kernel(request)
        await self._kernels.end(_principal(request), kernel.name)
        return nothing()

    async def _interrupt(self, request: Request) -> Answer:
        await self._kernel(request).interrupt()
        return nothing()

    async def _restart(self, request: Request) -> Answer:
        kernel = self._kernel(request)
        await kernel.restart()
        return as_json(kernel.model())

    async def _channels(self, websocket: WebSocket) -> None:
        try:
            visitor.check(websocket.scope, "run")
            kernel = self._kernel(websocket)
            if kernel.is_full:
                words = f"{MAX_CLIENTS} clients have this kernel open: close one"
                raise Refused(429, "too_many_requests", words)
        except Refused as refusal:
            await refuse_socket(websocket, refusal)
            return
        framing, subprotocol = framing_of(websocket.scope["subprotocols"])
        await websocket.accept(subprotocol)
        await Connection(websocket, framing).serve(kernel)

    async def _notebooks_open(self, request: Request) -> Answer:
        found = self._notebooks.of(_principal(request))
        return as_json([notebook.model(kernel) for notebook, kernel in found])

    async def _open_notebook(self, request: Request) -> Answer:
        wish = await _body(request, NotebookWish)
        kernel = await self._wished(request, wish) or await self._new_kernel(request, KernelWish())
        notebook = self._notebooks.open(_principal(request), wish, kernel)
        return as_json(notebook.model(kernel), 201)

    async def _notebook(self, request: Request) -> Answer:
        notebook, kernel = self._found_notebook(request)
        return as_json(notebook.model(kernel))

    async def _change_notebook(self, request: Request) -> Answer:
        notebook, kernel = self._found_notebook(request)
        wish = await _body(request, NotebookWish)
        kernel = await self._wished(request, wish) or kernel
        changed = self._notebooks.change(_principal(request), notebook, wish, kernel)
        return as_json(changed.model(kernel))

    async def _close_notebook(self, request: Request) -> Answer:
        _, kernel = self._found_notebook(request)
        await self._kernels.end(_principal(request), kernel.name)
        return nothing()

    def _found_notebook(self, request: Request) -> tuple[Notebook, Kernel]:
        name = request.path_params["notebook"]
        found = self._notebooks.find(_principal(request), name)
        if found is None:
            raise missing("notebook", name)
        return found

    async def _wished(self, request: Request, wish: NotebookWish) -> Kernel | None:
        """Return the kernel that a notebook shall have; None where nothing is said of one."""
        if wish.kernel is None or (wish.kernel.id is None and wish.kernel.name is None):
            return None
        if wish.kernel.id is None:
            return await self._new_kernel(request, wish.kernel)
        return self._named_kernel(request, wish.kernel.id)

    async def _new_kernel(self, request: Request, wish: KernelWish) -> Kernel:
        if wish.name not in (None, "", replies.KERNEL):
            raise missing("kernel spec", wish.name)
        return await self._kernels.create(_principal(request))

    def _kernel(self, connection: HTTPConnection) -> Kernel:
        return self._named_kernel(connection, connection.path_params["kernel"])

    def _named_kernel(self, connection: HTTPConnection, name: str) -> Kernel:
        kernel = self._kernels.find(_principal(connection), name)
        if kernel is None:
            raise missing("kernel", name)
        return kernel


def _guarded(handle: Handler, scope: ScopeWord) -> Callable[[Request], Awaitable[Any]]:
    """Return a handler for those who have this scope; what it raises becomes an answer."""

    async def handled(request: Request) -> Answer:
        try:
            visitor.check(request.scope, scope)
            return await handle(request)
        except (Refused, DivingbellError) as error:
            return of_error(error).answer(request.scope)

    return handled


def _principal(connection: HTTPConnection) -> Principal:
    visiting: Visitor = connection.scope[visitor.KEY]
    return visiting.principal()


async def _body(request: Request, kind: type[Wish]) -> Wish:
    share = quotas.share_of(request.scope)
    with contextlib.closing(quotas.Body(request.receive, share.bodies, MAX_BODY)) as body:
        data = await body.read()
        return parsed(data or b"{}", kind)


async def refuse_socket(websocket: WebSocket, refusal: Refused) -> None:
    """Answer the opening of a WebSocket with a refusal, as HTTP has it."""
    answer = refusal.answer(websocket.scope)
    told = Response(answer.body, answer.status, answer.headers, answer.media_type)
    await websocket.send_denial_response(told)
