"""A server on this machine, spoken to over its standard input and output.

The SDK's own transport reads a line in quadratic time and without an end to its memory, and hands
stderr to the terminal. This one caps a line, keeps stderr in a log, and starts the server in a
process group of its own that ends with it.
"""

import asyncio
import contextlib
import json
import logging
import signal
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from divingbell.errors import ToolFailed
from divingbell.gateway.groups import Groups
from divingbell.gateway.process import Process
from divingbell.gateway.server_log import ServerLog
from divingbell.gateway.servers import Server
from divingbell.gateway.unanswered import REASON, Unanswered

log = logging.getLogger(__name__)

MAX_LINE = 32 << 20
"""Bytes of one message. Parsed, a hostile one takes twenty times as much memory."""
MAX_INVALID = 100
"""Lines that are no messages, before the connection is given up."""
MAX_QUEUE = 64
REST = 1.0
"""Seconds that output may still come after the process itself has ended."""
NO_FOLDER = "/"
"""Where a server starts whose entry names no folder. In the current one, which may be a stranger's
clone, Python would import modules that lie there, and npx and uvx would obey settings that do."""

SAFE_VARIABLES = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
)  # fmt: skip


def environment_for(server: Server, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the server sees: a few basics and what its entry names, nothing else."""
    basics = {
        name: environment[name]
        for name in SAFE_VARIABLES
        # A function exported by a shell is code.
        if name in environment and not environment[name].startswith("()")
    }
    return basics | dict(server.env)


class Messages:
    """What the server says, message by message; the side of the connection that the SDK reads."""

    def __init__(self, over: asyncio.Event) -> None:
        self._over = over
        self._queue: deque[SessionMessage] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self.pipe: asyncio.ReadTransport | None = None

    def put(self, message: SessionMessage) -> None:
        self._queue.append(message)
        if len(self._queue) >= MAX_QUEUE and self.pipe is not None:
            self.pipe.pause_reading()
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._over.set()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def receive(self) -> SessionMessage:
        while not self._queue:
            if self._ended:
                raise anyio.EndOfStream
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        message = self._queue.popleft()
        if not self._queue and self.pipe is not None and not self.pipe.is_closing():
            self.pipe.resume_reading()
        return message

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Output(asyncio.Protocol):
    """Cuts the server's output into lines and the lines into messages."""

    def __init__(
        self, messages: Messages, unanswered: Unanswered, give_up: Callable[[str], None]
    ) -> None:
        self._messages = messages
        self._unanswered = unanswered
        self._give_up = give_up
        self._parts: list[bytes] = []
        self._size = 0
        self._invalid = 0
        self._over = False
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport)
        self._messages.pipe = transport

    def data_received(self, data: bytes) -> None:
        if self._over:
            return
        first, *others = data.split(b"\n")
        self._add(first)
        for part in others:
            self._line(b"".join(self._parts))
            self._parts, self._size = [], 0
            self._add(part)

    def connection_lost(self, error: Exception | None) -> None:
        self._messages.end()
        if not self.closed.done():
            self.closed.set_result(None)

    def discard(self) -> None:
        """Throw away what still comes."""
        self._over = True
        self._parts = []

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_LINE:
            self._stop(f"it sent a message of more than {MAX_LINE >> 20} MB")
        elif part:
            self._parts.append(part)

    def _line(self, line: bytes) -> None:
        if self._over or not line.strip():
            return
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if (answer := _failed_answer(line)) is not None:
                self._messages.put(SessionMessage(answer))
                return
            # Many a server prints a greeting first. What it says is not logged: it may be anything.
            self._invalid += 1
            if self._invalid > MAX_INVALID:
                self._stop(f"it sent more than {MAX_INVALID} lines that are no messages of MCP")
            return
        if self._unanswered.heard(message):
            self._messages.put(SessionMessage(message))
        else:
            self._stop(REASON)

    def _stop(self, reason: str) -> None:
        if not self._over:
            self._over = True
            self._parts = []
            self._give_up(reason)
            self._messages.end()


def _failed_answer(line: bytes) -> mcp_types.JSONRPCError | None:
    """What to make of an answer to a question of ours that is none: whoever waits is to know."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or "method" in found or "id" not in found:
        return None
    number = found["id"]
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    words = mcp_types.ErrorData(
        code=mcp_types.INTERNAL_ERROR, message="it answered with what is no result"
    )
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=number, error=words)


class _Input(asyncio.Protocol):
    """The server's standard input, with a word when it takes no more for now."""

    def __init__(self) -> None:
        self._free: asyncio.Future[None] | None = None
        self.lost = False

    def pause_writing(self) -> None:
        self._free = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._free is not None and not self._free.done():
            self._free.set_result(None)
        self._free = None

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self.resume_writing()

    async def drain(self) -> None:
        if self._free is not None:
            await asyncio.shield(self._free)


class Writer:
    """The side of the connection that the SDK writes to."""

    def __init__(
        self, pipe: asyncio.WriteTransport, protocol: _Input, unanswered: Unanswered
    ) -> None:
        self._pipe = pipe
        self._protocol = protocol
        self._unanswered = unanswered

    async def send(self, item: SessionMessage, /) -> None:
        if self._protocol.lost or self._pipe.is_closing():
            raise anyio.BrokenResourceError
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(text.encode() + b"\n")
        await self._protocol.drain()
        self._unanswered.said(item.message)

    async def aclose(self) -> None:
        self._pipe.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class StdioConnection:
    """One run of a stdio server: the streams for the SDK, and why it ended."""

    status: int | None = None

    def __init__(
        self,
        server: Server,
        environment: Mapping[str, str],
        server_log: ServerLog,
        groups: Groups | None = None,
    ) -> None:
        self._server = server
        self._groups = groups
        self._environment = environment
        self._log = server_log
        self._given_up: str | None = None
        self._process: Process | None = None
        self._output: _Output | None = None
        self._story: str | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def reason(self) -> str | None:
        """Why the server ended, in words; None if it did not end by itself."""
        if self._given_up is not None or self._story is not None:
            return self._given_up or self._story
        process, output = self._process, self._output
        if process is None or output is None or self._closed:
            return None
        if not process.exited.done() and not output.closed.done():
            return None
        await process.wait(REST)
        last = self._log.last_words()
        self._story = process.words() + (f"; its last words: {last}" if last else "")
        return self._story

    @contextlib.asynccontextmanager
    async def open(self, over: asyncio.Event) -> AsyncIterator[tuple[Any, Any]]:
        """Start the server; end it with the block. `over` is set when it ends by itself.

        Raises:
            ToolFailed: the command can't be started.
        """
        loop = asyncio.get_running_loop()
        self._log.begin()
        process = Process(self._spawn())
        self._process = process
        if self._groups is not None:
            self._groups.note(process.pid)
        messages, pipes = Messages(over), process.child
        unanswered = Unanswered()
        output = self._output = _Output(messages, unanswered, self.give_up)
        taken: asyncio.BaseTransport | None = None
        opened: list[asyncio.BaseTransport] = []
        watching: asyncio.Task[None] | None = None
        try:
            taken, feed = await loop.connect_write_pipe(_Input, pipes.stdin)
            opened.append(taken)
            heard, _ = await loop.connect_read_pipe(lambda: output, pipes.stdout)
            opened.append(heard)
            noise, _ = await loop.connect_read_pipe(lambda: self._log.listener(), pipes.stderr)
            opened.append(noise)
            watching = asyncio.create_task(self._watch(process, output, messages))
            yield messages, Writer(taken, feed, unanswered)
        finally:
            await self._close(process, messages, output, opened, taken, watching)
            if self._groups is not None:
                self._groups.forget(process.pid)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        server = self._server
        assert server.command is not None
        try:
            return subprocess.Popen(
                [server.command, *server.args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment_for(server, self._environment),
                cwd=server.cwd or NO_FOLDER,
                start_new_session=True,
                bufsize=0,
            )
        except FileNotFoundError as error:
            missing = server.cwd if error.filename == server.cwd else server.command
            raise ToolFailed(
                f"{missing} was not found; check `command`, `cwd` and PATH", "tool_unavailable"
            ) from None
        except (OSError, ValueError) as error:
            words = error.strerror if isinstance(error, OSError) else "an argument can't be passed"
            raise ToolFailed(f"{server.command}: {words}", "tool_unavailable") from None

    def give_up(self, reason: str) -> None:
        """End it now, for a reason that is told to those who wait for it."""
        self._given_up = self._given_up or reason
        if self._process is not None:
            self._process.signal_group(signal.SIGKILL)

    async def _watch(self, process: Process, output: _Output, messages: Messages) -> None:
        # A child of the server may hold its output open. The server is gone all the same.
        await asyncio.wait([process.exited])
        await asyncio.wait([output.closed], timeout=REST)
        messages.end()

    async def _close(
        self,
        process: Process,
        messages: Messages,
        output: _Output,
        opened: list[asyncio.BaseTransport],
        taken: asyncio.BaseTransport | None,
        watching: asyncio.Task[None] | None,
    ) -> None:
        pipes = process.child
        with anyio.CancelScope(shield=True):
            await self.reason()
            self._closed = True
            messages.pipe = None
            messages.end()
            output.discard()
            if taken is not None:
                taken.close()
            if pipes.stdout is not None and len(opened) > 1:
                # Keep reading what it still says: a server that is stuck in a write can't leave.
                heard = opened[1]
                assert isinstance(heard, asyncio.ReadTransport)
                if not heard.is_closing():
                    heard.resume_reading()
            ending = asyncio.ensure_future(process.end())
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError:
                # Asked twice to be quick: the group is killed now, and reaped all the same.
                process.signal_group(signal.SIGKILL)
                await ending
                raise
            finally:
                if watching is not None:
                    watching.cancel()
                for transport in opened:
                    _shut(transport)
                for pipe in (pipes.stdin, pipes.stdout, pipes.stderr)[len(opened) :]:
                    if pipe is not None:
                        pipe.close()
                self._log.flush()
                # The transports close their descriptors in the loop's next turn.
                await asyncio.sleep(0)


def _shut(transport: asyncio.BaseTransport) -> None:
    if isinstance(transport, asyncio.WriteTransport):
        # What it did not take is thrown away. Already closed, asyncio's own abort stumbles.
        if not getattr(transport.get_protocol(), "lost", True):
            transport.abort()
    else:
        transport.close()
