"""MCP servers over streamable HTTP, at one port: each at /<name>/mcp."""

import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from starlette.applications import Starlette
from starlette.routing import Mount


def application(servers: Mapping[str, Server[Any]]) -> Starlette:
    """Return an application that has them all."""
    mounts = [Mount(f"/{name}", server.streamable_http_app()) for name, server in servers.items()]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for server in servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    return Starlette(routes=mounts, lifespan=lifespan)


@contextlib.contextmanager
def hosted(servers: Mapping[str, Server[Any]]) -> Iterator[dict[str, dict[str, str]]]:
    """Serve them from a thread of this process, so that what they keep can be looked at.

    Yields the entries of an mcp.json.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # Else each answer in two pieces waits 40 ms for an acknowledgement: asyncio does not know
        # this socket for TCP.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = listener.getsockname()[1]
        running = uvicorn.Server(uvicorn.Config(application(servers), log_level="error"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield {name: {"url": f"http://127.0.0.1:{port}/{name}/mcp"} for name in servers}
        finally:
            running.should_exit = True
            thread.join()
