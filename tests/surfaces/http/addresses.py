"""Every address of a server, with the scope that it takes. A route that is new belongs here."""

import re
from dataclasses import dataclass
from typing import Any

import httpx2
from starlette.routing import Route, WebSocketRoute

from divingbell.surfaces.auth import ScopeWord
from divingbell.surfaces.http.application import OPERATIONS, Application
from divingbell.surfaces.http.operations import BASE

SOCKET = "WEBSOCKET"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
_KERNEL = "/jupyter/api/kernels/{kernel}"
_NOTEBOOK = "/jupyter/api/sessions/{notebook}"
_BESIDE: dict[tuple[str, str], ScopeWord | None] = {
    ("POST", "/mcp"): "run",
    ("GET", "/mcp"): "run",
    ("DELETE", "/mcp"): "run",
    ("GET", "/metrics"): "metrics",
    ("GET", "/outputs/{source}/{event}/{number}"): "read",
    ("GET", "/jupyter/api"): "read",
    ("GET", "/jupyter/api/kernelspecs"): "read",
    ("GET", "/jupyter/api/kernelspecs/{name}"): "read",
    ("GET", "/jupyter/api/kernels"): "read",
    ("POST", "/jupyter/api/kernels"): "run",
    ("GET", _KERNEL): "read",
    ("DELETE", _KERNEL): "run",
    ("POST", f"{_KERNEL}/interrupt"): "run",
    ("POST", f"{_KERNEL}/restart"): "run",
    (SOCKET, f"{_KERNEL}/channels"): "run",
    ("GET", "/jupyter/api/sessions"): "read",
    ("POST", "/jupyter/api/sessions"): "run",
    ("GET", _NOTEBOOK): "read",
    ("PATCH", _NOTEBOOK): "run",
    ("DELETE", _NOTEBOOK): "run",
    ("GET", "/"): None,
    ("GET", "/assets/{name}"): None,
    ("POST", "/login"): None,
    ("POST", "/logout"): None,
    ("GET", "/healthz"): None,
    ("GET", "/readyz"): None,
    ("GET", "/openapi.json"): None,
}


@dataclass(frozen=True)
class Address:
    """Something that can be asked for."""

    method: str
    path: str
    need: ScopeWord | None
    """The scope that it takes; None where it is open to all."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    async def asked(
        self, nobody: httpx2.AsyncClient, token: str | None = None, **headers: str
    ) -> httpx2.Response:
        """What is answered to somebody who asks for it, with names of what is nobody's."""
        path = re.sub(r"\{(\w+)\}", "0", self.path)
        if self.method == SOCKET:
            headers = UPGRADE | headers
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        method = "GET" if self.method == SOCKET else self.method
        content = b"a=1" if method not in ("GET", "DELETE") else b""
        async with nobody.stream(method, path, content=content, headers=headers) as answer:
            if answer.headers.get("content-type") != "text/event-stream":
                await answer.aread()
            return answer


def _typed(path: str) -> str:
    return re.sub(r":\w+\}", "}", path)


ADDRESSES = [
    *(Address(each.method, BASE + _typed(each.path), each.need) for each in OPERATIONS),
    *(Address(method, path, need) for (method, path), need in _BESIDE.items()),
]


def routed(app: Application) -> set[tuple[str, str]]:
    """The routes that an application really has."""
    guard: Any = app._app
    found = set[tuple[str, str]]()
    for route in guard._app.routes:
        if isinstance(route, WebSocketRoute):
            found.add((SOCKET, _typed(route.path)))
        else:
            assert isinstance(route, Route)
            known = {each.method for each in ADDRESSES if each.path == _typed(route.path)}
            methods = (route.methods or known or {"any"}) - {"HEAD"}
            found |= {(method, _typed(route.path)) for method in methods}
    return found
