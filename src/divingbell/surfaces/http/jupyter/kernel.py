"""A kernel: a session as Jupyter's clients have it, who share one row of requests."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from divingbell import logs
from divingbell.errors import DivingbellError
from divingbell.session.base import SessionHandle
from divingbell.shares.host_time import HostTime
from divingbell.surfaces.http.jupyter import outputs, replies
from divingbell.surfaces.http.jupyter.cell import CellRequest, failed, run_cell
from divingbell.surfaces.http.jupyter.messages import (
    BadMessage,
    Header,
    Message,
    Request,
    message,
    reply_kind,
)
from divingbell.surfaces.http.problems import Refused
from divingbell.surfaces.http.queue import Queue, Ticket

log = logs.logger("divingbell")

MAX_WAITING = 1_000
"""Requests that wait in the row: a notebook that is run as a whole sends all of its cells."""
MAX_WAITING_BYTES = 32 << 20
"""Of their contents."""
MAX_CLIENTS = 32
ANSWER = 0.0003
"""Seconds of the host's processor time that a request and its answers are taken to cost, beside
what its session is charged for."""
State = Literal["idle", "busy", "dead"]


class Interrupted(Exception):
    """Raised for a cell that was interrupted while it waited for its turn."""


class Client(Protocol):
    """One who has the kernel open."""

    def send(self, message: Message) -> None:
        """Take a message, to be sent soon."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: Request
    client: Client


class Kernel:
    """A session, the clients that have it open, and their requests, done one after another.

    All clients hear what its code shows, and whether it is busy. Only the one that has asked gets
    the reply. `end` ends the session, `pace` is the account of its user, `count` is told the code
    of each cell that is refused.
    """

    def __init__(
        self,
        name: str,
        session: SessionHandle,
        queue: Queue,
        end: Callable[[], Awaitable[object]],
        pace: HostTime,
        count: Callable[[str], None],
    ) -> None:
        self.name = name
        self.session = session
        self.pace = pace
        self._queue = queue
        self._ticket: Ticket | None = None
        """The place of the cell that waits for its turn, or runs."""
        self._end = end
        self._count = count
        self._clients: set[Client] = set()
        self._row: deque[_Waiting] = deque()
        self._row_bytes = 0
        self._work: asyncio.Task[None] | None = None
        self._used = time.time()

    @property
    def state(self) -> State:
        if self.session.closed:
            return "dead"
        return "busy" if self._work is not None or self.session.busy else "idle"

    def model(self) -> dict[str, Any]:
        """Return it as Jupyter lists it."""
        used = datetime.fromtimestamp(self._used, UTC)
        return {
            "id": self.name,
            "name": replies.KERNEL,
            "last_activity": used.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "execution_state": self.state,
            "connections": len(self._clients),
        }

    @property
    def is_full(self) -> bool:
        """Whether as many clients have it open as may."""
        return len(self._clients) >= MAX_CLIENTS

    @contextlib.contextmanager
    def opened_by(self, client: Client) -> Iterator[None]:
        """Count a client in. What it has asked for goes on when it leaves, as notebooks expect."""
        self._clients.add(client)
        try:
            yield
        finally:
            self._clients.discard(client)

    def publish(
        self, kind: str, content: Mapping[str, Any] | bytes, parent: Header | None = None
    ) -> None:
        """Tell all clients."""
        shown = message(kind, "iopub", content, parent)
        for client in self._clients:
            client.send(shown)

    async def take(self, request: Request, client: Client) -> None:
        """Take a request: what is for the control channel is done at once, all else in its turn."""
        self._used = time.time()
        if request.channel == "control":
            await self._answer(_Waiting(request, client))
        elif request.channel in ("shell", None):
            self._enqueue(_Waiting(request, client))
        # Nobody has asked for input, and clients have nothing to publish.

    async def interrupt(self) -> None:
        """Stop the cell that runs, or waits for its turn; those behind it are then aborted."""
        turn = None if self._ticket is None else self._ticket.turn
        if turn is not None and not turn.done():
            turn.cancel()
        else:
            await self.session.interrupt()

    async def restart(self) -> None:
        """Begin with a fresh interpreter; files stay.

        Raises:
            SessionClosed: the session has ended.
        """
        self._abort_row()
        await self.interrupt()
        await self.session.reset()
        self.publish("status", {"execution_state": "restarting"})

    async def stop(self) -> None:
        """End all work for clients; the cell that runs is interrupted."""
        self._abort_row()
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    def ended(self) -> None:
        """Tell clients that the session has ended."""
        self._abort_row()
        self.publish("status", {"execution_state": "dead"})

    # The row

    def _enqueue(self, waiting: _Waiting) -> None:
        size = waiting.request.size
        if len(self._row) >= MAX_WAITING or self._row_bytes + size > MAX_WAITING_BYTES:
            words = f"the kernel has {len(self._row):,} requests waiting: wait for some to be done"
            self._reply(waiting, replies.unsupported(words, "TooManyRequests"))
            return
        self._row.append(waiting)
        self._row_bytes += size
        if self._work is None:
            self._work = asyncio.create_task(self._do_row())

    async def _do_row(self) -> None:
        try:
            while self._row:
                waiting = self._row.popleft()
                self._row_bytes -= waiting.request.size
                await self._answer(waiting)
                await asyncio.sleep(self.pace.charge(ANSWER))
        finally:
            self._work = None

    async def _answer(self, waiting: _Waiting) -> None:
        """Do what is asked, between the words that the kernel is busy and that it is idle."""
        header = waiting.request.header
        self.publish("status", {"execution_state": "busy"}, header)
        try:
            content = await self._content(waiting.request)
        except BadMessage as error:
            content = replies.unsupported(str(error), "BadMessage")
        except DivingbellError as error:
            content = replies.unsupported(str(error), type(error).__name__)
        except Exception:
            log.exception("a request of a Jupyter client failed")
            content = replies.unsupported("an error of Divingbell, which its log tells of", "Error")
        if content is not None:
            self._reply(waiting, content)
        self.publish("status", {"execution_state": "idle"}, header)
        if self.session.closed:
            self.publish("status", {"execution_state": "dead"})

    async def _content(self, request: Request) -> Mapping[str, Any] | None:
        """Return the content of the reply; None where there is none."""
        if request.kind == "execute_request":
            return await self._execute(request)
        if request.kind == "interrupt_request":
            await self.interrupt()
            return {"status": "ok"}
        if request.kind == "shutdown_request":
            return await self._shut_down(request)
        if request.kind in ("comm_open", "comm_msg"):
            await self._refuse_comm(request)
            return None
        return await replies.reply(self.session, request)

    async def _execute(self, request: Request) -> dict[str, Any]:
        asked = await request.read(CellRequest)

        def show(kind: str, content: bytes) -> None:
            self.publish(kind, content, request.header)

        try:
            async with self._turn():
                reply = await run_cell(self.session, asked, show)
        except Interrupted as error:
            reply = await failed("KeyboardInterrupt", str(error), self.session.cells, show)
        except Refused as error:
            self._count(error.code)
            reply = await failed("TooManyCells", str(error), self.session.cells, show)
        if reply["status"] == "error" and asked.stop_on_error:
            self._abort_row(cells_only=True)
        return reply

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a cell.

        Raises:
            Refused: too many wait already, or the server ends.
            Interrupted: somebody has interrupted it.
        """
        ticket = self._ticket = self._queue.enter(self.session.user or "", self.name)
        try:
            if ticket.turn is not None:
                await asyncio.wait([ticket.turn])
                if ticket.turn.cancelled():
                    raise Interrupted("the cell was interrupted before it began")
                ticket.turn.result()
            yield
        finally:
            self._ticket = None
            self._queue.leave(ticket)

    async def _refuse_comm(self, request: Request) -> None:
        comm = (await request.read(replies.Comm)).comm_id
        words = {"comm_id": comm, "data": {"reason": replies.NO_WIDGETS}}
        self.publish("comm_close", words, request.header)
        self.publish(*outputs.stream("stderr", f"[{replies.NO_WIDGETS}]\n"), request.header)

    async def _shut_down(self, request: Request) -> dict[str, Any]:
        restart = (await request.read(replies.Shutdown)).restart
        if restart:
            await self.restart()
        else:
            await self._end()
        return {"status": "ok", "restart": restart}

    def _abort_row(self, *, cells_only: bool = False) -> None:
        """Answer those who wait that it will not be done."""
        waiting = list(self._row)
        self._row.clear()
        self._row_bytes = 0
        for each in waiting:
            if cells_only and each.request.kind != "execute_request":
                self._row.append(each)
                self._row_bytes += each.request.size
                continue
            self.publish("status", {"execution_state": "busy"}, each.request.header)
            self._reply(each, {"status": "aborted"})
            self.publish("status", {"execution_state": "idle"}, each.request.header)

    def _reply(self, waiting: _Waiting, content: Mapping[str, Any]) -> None:
        request = waiting.request
        if waiting.client in self._clients:
            channel = request.channel or "shell"
            reply = message(reply_kind(request.kind), channel, content, request.header)
            waiting.client.send(reply)
