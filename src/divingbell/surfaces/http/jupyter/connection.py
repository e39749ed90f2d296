"""A connection: the WebSocket of one client of a kernel, read at a pace, written within bounds."""

import asyncio
import time
from collections import deque

from starlette.websockets import WebSocket, WebSocketDisconnect

from divingbell.shares import weight
from divingbell.surfaces.http import visitor
from divingbell.surfaces.http.jupyter import outputs
from divingbell.surfaces.http.jupyter.framing import Frame, Framing
from divingbell.surfaces.http.jupyter.kernel import Kernel
from divingbell.surfaces.http.jupyter.messages import BadMessage, Message, message

MAX_FRAME = 17 << 20
"""Bytes of a frame: the code of a cell may have sixteen megabytes."""
LARGE = 1 << 18
"""Bytes from which on a frame is read in a thread."""
MAX_UNSENT = 16 << 20
"""Bytes that wait for a client that reads slowly. What code shows is left out after that."""
MAX_UNSENT_MESSAGES = 10_000
"""Messages that wait, replies and words about the state among them. Who leaves so many unread is
gone."""
SHOWN = frozenset({
    "stream", "display_data", "update_display_data", "execute_result", "clear_output",
    "execute_input", "error",
})  # fmt: skip
"""Messages that may be left out. Without a reply or the word `idle` a client would wait for
ever."""
TOO_BIG, BAD_DATA, REFUSED = 1009, 1007, 1008
NO_LONGER = "the token has expired or was revoked: ask for another"
WITH_THE_REPLY = "execute_result"
"""The message that waits for the next one: a value is the last that a cell shows, and its reply
follows at once. Both in one go wake the client once."""
MAX_REASON = 120
"""Characters of the reason with which a WebSocket is closed: there is room for 123 bytes."""


class Connection:
    """One client of a kernel."""

    def __init__(self, websocket: WebSocket, framing: Framing) -> None:
        self._websocket = websocket
        self._framing = framing
        self._unsent: deque[Message] = deque()
        self._unsent_bytes = 0
        self._left_out: Message | None = None
        """The last message that was left out, and how many there were."""
        self._left_out_count = 0
        self._something = asyncio.Event()
        self._is_gone = asyncio.Event()
        """Set for a client that leaves everything unread."""

    def send(self, message: Message) -> None:
        """Take a message, to be sent soon. What is shown is left out where too much waits."""
        if message.kind in SHOWN and self._unsent_bytes + message.size > MAX_UNSENT:
            self._left_out, self._left_out_count = message, self._left_out_count + 1
            return
        if len(self._unsent) >= MAX_UNSENT_MESSAGES:
            self._is_gone.set()
            return
        self._unsent.append(message)
        self._unsent_bytes += message.size
        if message.kind != WITH_THE_REPLY:
            self._something.set()

    async def serve(self, kernel: Kernel) -> None:
        """Pass messages on in both directions until the client leaves."""
        with kernel.opened_by(self):
            tasks: set[asyncio.Task[object]] = {
                asyncio.create_task(self._read(kernel)),
                asyncio.create_task(self._write()),
                asyncio.create_task(self._is_gone.wait()),
            }
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, WebSocketDisconnect):
                raise outcome

    # Reading

    async def _read(self, kernel: Kernel) -> None:
        while (frame := await self._next_frame()) is not None:
            began = time.thread_time()
            if len(frame) > MAX_FRAME:
                return await self._close(TOO_BIG, f"a message may have {MAX_FRAME:,} bytes at most")
            try:
                request = await weight.beside(self._framing.read, frame, text=LARGE)
            except BadMessage as error:
                return await self._close(BAD_DATA, f"this is no message: {error}")
            rest = kernel.pace.charge(time.thread_time() - began)
            await kernel.take(request, self)
            if rest:
                await asyncio.sleep(rest)

    async def _next_frame(self) -> Frame | None:
        received = await self._websocket.receive()
        if received["type"] != "websocket.receive":
            return None
        if not visitor.holds(self._websocket.scope):
            await self._close(REFUSED, NO_LONGER)
            return None
        text: str | None = received.get("text")
        data: bytes | None = received.get("bytes")
        return text if text is not None else data

    # Writing

    async def _write(self) -> None:
        while True:
            await self._something.wait()
            while self._unsent:
                await self._write_one(self._unsent.popleft())
            self._something.clear()

    async def _write_one(self, message: Message) -> None:
        if not visitor.holds(self._websocket.scope):
            self._is_gone.set()
            return await self._close(REFUSED, NO_LONGER)
        frame = self._framing.write(message)
        if isinstance(frame, str):
            await self._websocket.send_text(frame)
        else:
            await self._websocket.send_bytes(frame)
        self._unsent_bytes -= message.size
        if self._left_out is not None and self._unsent_bytes < MAX_UNSENT / 2:
            self._tell_left_out(self._left_out)

    def _tell_left_out(self, last: Message) -> None:
        words = (
            f"[{self._left_out_count:,} messages were left out here: this client reads more slowly "
            "than the code writes]\n"
        )
        self._left_out, self._left_out_count = None, 0
        kind, content = outputs.stream("stderr", words)
        told = message(kind, "iopub", content)
        self.send(Message(kind, "iopub", told.msg_id, told.header, last.parent, told.content))

    async def _close(self, code: int, reason: str) -> None:
        await self._websocket.close(code, reason[:MAX_REASON])
