"""The handler for downloads of docs/library.md, behind a web server and asked by a client."""

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from divingbell import Session
from tests.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
BIG = bytes(range(256)) * 3_000

Handler = Callable[[Request], Awaitable[Response]]


def _handler(session: Session) -> Handler:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    [block] = [block for block in blocks if "StreamingResponse" in block]
    names: dict[str, Any] = {"session": session}
    exec(block[: block.index("\n\n\nanswer = ")], names)
    handler: Handler = names["download"]
    return handler


@contextlib.asynccontextmanager
async def _served(session: Session) -> AsyncIterator[httpx2.AsyncClient]:
    app = Starlette(routes=[Route("/{path:path}", _handler(session))])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await until(lambda: server.started, "the web server starts")
            host, port = listening.getsockname()
            async with httpx2.AsyncClient(base_url=f"http://{host}:{port}") as client:
                yield client
        finally:
            server.should_exit = True
            await serving


async def test_a_web_handler_answers_what_is_so(session: Session) -> None:
    code = "import os; f = open('huge', 'wb'); f.truncate(2_000_000); os.symlink('big', 'link')"
    await session.run(code)
    await session.files.put("folder/big", BIG)
    async with _served(session) as client:
        found = await client.get("/folder/big")
        assert (found.status_code, found.content) == (200, BIG)
        assert found.headers["content-length"] == str(len(BIG))
        expected = {
            "/nothing": (404, "'nothing': there is no such file or folder"),
            "/huge": (413, "'huge': it has 2,000,000 bytes, 1,000,000 are allowed"),
            "/link": (403, "'link': it is a link, and links are never followed"),
            "/folder": (403, "'folder': it is a folder, and not a file"),
        }
        for path, answer in expected.items():
            refused = await client.get(path)
            assert (refused.status_code, refused.text) == answer


async def test_a_client_that_goes_away_leaves_the_session_as_it_was(session: Session) -> None:
    await session.files.put("big", BIG)
    async with _served(session) as client:
        for _ in range(5):
            async with client.stream("GET", "/big") as answer:
                assert await anext(answer.aiter_raw(1000))
        assert (await client.get("/big")).content == BIG
    assert (await session.run("1 + 1")).value == 2
