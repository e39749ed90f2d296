"""Upstreams for tests: started, and stopped whatever happens."""

import contextlib
import http.server
import socket
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import mcp_types

from divingbell.errors import ToolFailed
from divingbell.gateway.upstream.upstream import Upstream
from divingbell.settings.servers import Server
from tests.real_servers import Command, fixture
from tests.waiting import until


class Listener:
    """A caller that keeps what it hears and answers all questions alike."""

    def __init__(self, session: str | None = "one", answer: Any = None) -> None:
        self.session = session
        self.heard: list[tuple[float, float | None, str | None]] = []
        self.logs: list[Any] = []
        self.asked: list[Any] = []
        self._answer = answer

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))

    async def log(self, params: mcp_types.LoggingMessageNotificationParams) -> None:
        self.logs.append(params.data)

    async def elicit(self, params: Any) -> mcp_types.ElicitResult | mcp_types.ErrorData:
        self.asked.append(params)
        if self._answer is None:
            return mcp_types.ElicitResult(action="decline")
        return mcp_types.ElicitResult(action="accept", content=self._answer)

    async def sample(self, params: Any) -> mcp_types.CreateMessageResult | mcp_types.ErrorData:
        self.asked.append(params)
        return mcp_types.CreateMessageResult(
            role="assistant",
            content=mcp_types.TextContent(type="text", text="a poem"),
            model="none",
        )


def entry(command: Command, name: str = "shop", **more: Any) -> Server:
    return Server(name, command=command[0], args=tuple(command[1]), **more)


@contextlib.asynccontextmanager
async def running(server: Server, folder: Path, **more: Any) -> AsyncIterator[Upstream]:
    lists: list[list[str]] = []
    upstream = Upstream(
        server,
        on_tools=lambda tools: lists.append([tool.name for tool in tools]),
        log_folder=folder,
        **more,
    )
    upstream.lists = lists  # type: ignore[attr-defined]
    upstream.start()
    try:
        yield upstream
    finally:
        await upstream.stop()


def shop(*arguments: str, name: str = "shop", **more: Any) -> Server:
    command, given = fixture("workshop")
    return entry((command, [*given, *arguments]), name, **more)


async def text_of(upstream: Upstream, tool: str, arguments: dict[str, Any], **more: Any) -> str:
    result = await upstream.call_tool(tool, arguments, **more)
    block = result.content[0]
    assert isinstance(block, mcp_types.TextContent)
    return block.text


async def failure_of(upstream: Upstream, tool: str, arguments: Any, **more: Any) -> ToolFailed:
    try:
        result = await upstream.call_tool(tool, arguments, **more)
    except ToolFailed as error:
        return error
    raise AssertionError(f"it did not fail: {result}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def web_server(
    command: Command, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server process of its own that listens on a port; ended with the block."""
    process = subprocess.Popen(
        [command[0], *command[1]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def listening(port: int) -> None:
    """Return once somebody listens on the port."""

    def there() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await until(there, f"a server on port {port}")


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


@contextlib.contextmanager
def web_page(folder: Path) -> Iterator[str]:
    """The address of a small page."""
    (folder / "page.html").write_text("<h1>Title</h1><p>a small page about nothing</p>")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, directory=str(folder), **more)

        def log_message(self, *_: object) -> None:
            pass

    with _serving(Handler) as port:
        yield f"http://127.0.0.1:{port}/page.html"


@contextlib.contextmanager
def thief() -> Iterator[tuple[int, list[str]]]:
    """A port, and what is said to whoever listens there."""
    stolen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            stolen.append(str(self.headers))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with _serving(Handler) as port:
        yield port, stolen


@contextlib.contextmanager
def _serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
