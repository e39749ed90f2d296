"""A server on this machine, spoken to over its standard input and output.

The SDK's own transport reads a line in quadratic time and without an end to its memory, and hands
stderr to the terminal. This one caps a line, keeps stderr in a log, and starts the server in a
process group of its own that ends with it.
"""

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import anyio
import mcp_types
from mcp.shared.message import SessionMessage

from divingbell import logs, text
from divingbell.errors import ToolFailed
from divingbell.gateway.upstream.transport import own_uv
from divingbell.gateway.upstream.transport.messages import MAX_QUOTED, Messages, Output
from divingbell.gateway.upstream.transport.orphan_groups import ProcessGroups
from divingbell.gateway.upstream.transport.process import Process
from divingbell.gateway.upstream.transport.server_log import ServerLog
from divingbell.gateway.upstream.transport.streams import Stream
from divingbell.gateway.upstream.transport.unanswered import Unanswered
from divingbell.settings.servers import Server

log = logs.logger(__name__)

LAST_OUTPUT = 1.0
"""Seconds that output may still come after the process itself has ended."""
MAX_PRINTED = 200
"""Characters of what a server prints that is no message, in a reason."""
NO_FOLDER = "/"
"""The folder in which a server starts whose entry names none. In the current one, which may be a
stranger's clone, Python would import modules that lie there, and npx and uvx would obey settings
that do."""

SAFE_VARIABLES = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
    "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
)  # fmt: skip


def environment_for(server: Server, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a server: a few basics and what its entry names, nothing else."""
    basics = {
        name: environment[name]
        for name in SAFE_VARIABLES
        # A function exported by a shell is code.
        if name in environment and not environment[name].startswith("()")
    }
    return basics | dict(server.env)


class _Input(asyncio.Protocol):
    """The server's standard input. It tells when it takes no more for now."""

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


class Writer(Stream):
    """The side of the connection that the SDK writes to."""

    def __init__(
        self,
        pipe: asyncio.WriteTransport,
        protocol: _Input,
        messages: Messages,
        unanswered: Unanswered,
        leave: Callable[[], Awaitable[None]],
    ) -> None:
        self._pipe = pipe
        self._leave = leave
        self._protocol = protocol
        self._messages = messages
        self._unanswered = unanswered

    async def send(self, item: SessionMessage, /) -> None:
        if self._protocol.lost or self._pipe.is_closing():
            raise anyio.BrokenResourceError
        if isinstance(item.message, mcp_types.JSONRPCRequest):
            self._messages.expect(item.message.id)
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._pipe.write(text.encode() + b"\n")
        await self._protocol.drain()
        self._unanswered.count_sent(item.message)

    async def aclose(self) -> None:
        await self._leave()
        self._pipe.close()


class StdioConnection:
    """One run of a stdio server: the streams for the SDK, and why it ended."""

    status: int | None = None

    def __init__(
        self,
        server: Server,
        environment: Mapping[str, str],
        server_log: ServerLog,
        process_groups: ProcessGroups | None = None,
    ) -> None:
        self._server = server
        self._process_groups = process_groups
        self._environment = environment
        self._log = server_log
        self._given_up: str | None = None
        self._process: Process | None = None
        self._output: Output | None = None
        self._messages: Messages | None = None
        self._ending: str | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process, once it is started."""
        return None if self._process is None else self._process.pid

    async def reason(self) -> str | None:
        """Return why the server ended, in words; None if it did not end by itself."""
        if self._given_up is not None:
            return self._given_up + self._printed()
        if self._ending is not None:
            return self._ending
        process, output = self._process, self._output
        if process is None or output is None or self._closed:
            return None
        if not process.exited.done() and not output.closed.done():
            return None
        await process.wait(LAST_OUTPUT)
        last = self._log.last_words()
        self._ending = process.ending() + (f"; its last words: {last}" if last else "")
        self._ending += self._printed()
        return self._ending

    def _printed(self) -> str:
        """Return what it has printed in the place of messages, as the end of a sentence."""
        said = b"" if self._messages is None else self._messages.first_invalid
        if not said.strip():
            return ""
        words = self._log.readable(said, is_whole=len(said) < MAX_QUOTED)
        return (
            "; it printed this on its standard output, where only messages of MCP belong: "
            + text.one_line(words, MAX_PRINTED)
        )

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
        if self._process_groups is not None:
            self._process_groups.note(process.pid)
        unanswered = Unanswered()
        messages, pipes = Messages(over, unanswered, self.give_up), process.child
        self._messages = messages
        output = self._output = Output(messages)
        stdin: asyncio.BaseTransport | None = None
        opened: list[asyncio.BaseTransport] = []
        watching: asyncio.Task[None] | None = None
        try:
            stdin, protocol = await loop.connect_write_pipe(_Input, pipes.stdin)
            opened.append(stdin)
            stdout, _ = await loop.connect_read_pipe(lambda: output, pipes.stdout)
            opened.append(stdout)
            stderr, _ = await loop.connect_read_pipe(lambda: self._log.listener(), pipes.stderr)
            opened.append(stderr)
            watching = asyncio.create_task(self._watch(process, output, messages))
            yield messages, Writer(stdin, protocol, messages, unanswered, self._leave)
        finally:
            await self._close(process, messages, output, opened, stdin, watching)
            if self._process_groups is not None:
                self._process_groups.forget(process.pid)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        server = self._server
        assert server.command is not None
        environment = environment_for(server, self._environment)
        try:
            return subprocess.Popen(
                [own_uv.program_for(server.command, environment), *server.args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
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

    async def _leave(self) -> None:
        """Note how it ended, if it has; from here on it ends because it is left."""
        await self.reason()
        self._closed = True

    async def _watch(self, process: Process, output: Output, messages: Messages) -> None:
        # A child of the server may hold its output open. The server is gone all the same.
        await asyncio.wait([process.exited])
        await asyncio.wait([output.closed], timeout=LAST_OUTPUT)
        messages.end()

    async def _close(
        self,
        process: Process,
        messages: Messages,
        output: Output,
        opened: list[asyncio.BaseTransport],
        stdin: asyncio.BaseTransport | None,
        watching: asyncio.Task[None] | None,
    ) -> None:
        pipes = process.child
        with anyio.CancelScope(shield=True):
            await self._leave()
            messages.pipe = None
            messages.end()
            output.discard()
            if stdin is not None:
                stdin.close()
            if pipes.stdout is not None and len(opened) > 1:
                # Keep reading what it still says: a server that is stuck in a write can't leave.
                stdout = cast(
                    asyncio.ReadTransport, opened[1]
                )  # uvloop's is none of asyncio's classes
                if not stdout.is_closing():
                    stdout.resume_reading()
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
                    _close_now(transport)
                for pipe in (pipes.stdin, pipes.stdout, pipes.stderr)[len(opened) :]:
                    if pipe is not None:
                        pipe.close()
                self._log.flush()
                # The transports close their descriptors in the loop's next turn.
                await asyncio.sleep(0)


def _close_now(transport: asyncio.BaseTransport) -> None:
    if isinstance(transport, asyncio.WriteTransport):
        # What it did not take is thrown away. Already closed, asyncio's own abort stumbles.
        if not getattr(transport.get_protocol(), "lost", True):
            transport.abort()
    else:
        transport.close()
