"""The interpreter of a sandbox as the host sees it: a tether that can be laid anew."""

import asyncio
import os
import signal
from typing import Protocol

from divingbell.errors import SandboxUnavailable
from divingbell.sandbox.base import Sandbox
from divingbell.session.tether import Tether
from divingbell.shares.host_time import HostTime
from divingbell_inside import frames, layout

READY_TIMEOUT = 30.0
COPY_TIMEOUT = 3.0
"""A copy waits already: all it has to do is to say so."""
LOOK_AGAIN = 0.5
"""Seconds after which it is looked whether a flood is over that nobody has heard of since."""
ENDING_PATIENCE = 0.5
"""After the line has closed, the supervisor says within this time how the interpreter ended."""


class Listener(Protocol):
    """The receiver of everything that the interpreter says."""

    def text(self, data: bytes) -> None: ...

    def frame(self, header: frames.Header, body: bytes) -> None: ...

    def ended(self, reason: str) -> None: ...

    def overdrawn(self, seconds: float, times: float) -> None:
        """Hear that it has taken that much more of the host's processor time than it may.

        `times` is how many times as large its share would be, did it not flood with others.
        """


class Interpreter:
    """A sandbox and the tether into it. Between `start` and `stop` there is one listener."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.host_time = HostTime(self._overdrawn, self._flood)
        self.listener: Listener | None = None
        self.alive = False
        self.gone: str | None = None
        """The reason why the whole sandbox is gone, if it is."""
        self._looking = False
        """Whether it will be looked again if a flood is over."""
        self._tether: Tether | None = None
        self._ready: asyncio.Future[None] | None = None
        sandbox.on_ended = self._ended
        sandbox.on_gone = self._sandbox_gone

    def listen(self, listener: Listener, owner: object) -> None:
        """Give it to a session, which is told from now on what it says."""
        self.listener = listener
        self.host_time.owner = owner

    async def start(self) -> None:
        """Seal the sandbox, start the interpreter, wait until it listens.

        Raises:
            SandboxUnavailable: it could not be, and the sandbox was ended.
        """
        tether = self._lay_tether()
        try:
            await self.sandbox.start(tether, 0)
            await self._until_ready()
        except BaseException:
            await self.stop()
            raise

    async def replace(self, cell: int, *, fresh: bool = False) -> bool:
        """End all that runs inside and put the copy (True) or a fresh one (False) in its place."""
        if self._tether is not None:
            self._tether.close()
        self.alive = False
        if self.gone is not None:
            raise SandboxUnavailable(f"the sandbox is gone: {self.gone}")
        tether = self._lay_tether()
        copied = await self.sandbox.replace(tether, cell, fresh=fresh)
        if not copied:
            await self._until_ready()
            return False
        try:
            await self._until_ready(COPY_TIMEOUT)
        except SandboxUnavailable:
            # Hostile code may have announced a copy that is none. The files need not go with it.
            return await self.replace(cell, fresh=True)
        return True

    def send(self, header: frames.Header, body: bytes = b"") -> None:
        if self._tether is not None:
            self._tether.send(header, body)

    async def drained(self) -> None:
        """Return when the interpreter has read enough of what was sent."""
        if self._tether is not None:
            await self._tether.drained()

    def pause(self) -> None:
        if self._tether is not None:
            self._tether.pause()

    def resume(self) -> None:
        if self._tether is not None:
            self._tether.resume()

    async def stop(self) -> None:
        self.listener = None
        self.alive = False
        self.gone = self.gone or "it was stopped"
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(SandboxUnavailable(f"the sandbox is gone: {self.gone}"))
            self._ready.exception()  # whoever waits for it still sees it; nobody has to
        try:
            if self._tether is not None:
                self._tether.close()
        finally:
            await self.sandbox.stop()

    def give_up(self, reason: str) -> None:
        """Cut the line: what runs inside reaches nobody any more, until it is replaced."""
        if self._tether is not None:
            self._tether.close()
        self._end(reason)

    def _lay_tether(self) -> Tether:
        self._ready = asyncio.get_running_loop().create_future()
        self._tether = Tether(self._on_text, self._on_frame, self._line_closed, self.host_time)
        return self._tether

    async def _until_ready(self, patience: float = READY_TIMEOUT) -> None:
        assert self._ready is not None
        try:
            async with asyncio.timeout(patience):
                await self._ready
        except TimeoutError:
            raise SandboxUnavailable(
                f"the interpreter did not answer within {patience:g} s of its start: try again, "
                "and run `divingbell doctor` if it comes again"
            ) from None
        self.alive = True

    def _on_text(self, data: bytes) -> None:
        if self.listener is not None:
            self.listener.text(data)

    def _on_frame(self, header: frames.Header, body: bytes) -> None:
        if self._ready is not None and not self._ready.done():
            if header.get("event") == "ready":
                self._ready.set_result(None)
        elif self.listener is not None:
            self.listener.frame(header, body)

    def _overdrawn(self, seconds: float, times: float) -> None:
        if self.listener is not None:
            self.listener.overdrawn(seconds, times)

    def _flood(self, is_one: bool) -> None:
        """Let other sessions have the processor first while this one floods the host: they wait for
        a host that it keeps busy already."""
        self.sandbox.give_way(is_one)
        if is_one and not self._looking:
            self._look_later()

    def _look_later(self) -> None:
        self._looking = self.gone is None and self.host_time.is_flood
        if self._looking:
            asyncio.get_running_loop().call_later(LOOK_AGAIN, self._look_again)

    def _look_again(self) -> None:
        self.host_time.look()
        self._look_later()

    def _line_closed(self, reason: str) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(ENDING_PATIENCE, self._end_without_word, self._tether, reason)

    def _end_without_word(self, tether: Tether | None, reason: str) -> None:
        if tether is self._tether:
            self._end(reason)

    def _ended(self, status: int) -> None:
        if self._tether is not None:
            self._tether.close()  # reads what is left in the pipe
        self._end(_how_it_ended(status))

    def _sandbox_gone(self, reason: str) -> None:
        self.gone = reason
        self._ended(signal.SIGKILL)

    def _end(self, reason: str) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(SandboxUnavailable(f"the interpreter ended: {reason}"))
        was_alive, self.alive = self.alive, False
        if was_alive and self.listener is not None:
            self.listener.ended(reason)


def _how_it_ended(status: int) -> str:
    """Put a wait status into words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        if number == signal.SIGSEGV:
            return "the interpreter crashed (SIGSEGV: invalid memory access in C code)"
        return f"the interpreter was ended by {name}"
    code = os.WEXITSTATUS(status)
    if code == layout.LOST_LINE:
        return "the code closed the descriptors that the interpreter needs"
    return f"the interpreter exited with status {code} (os._exit or the like)"
