"""The listening end of lines: a port, those who have proved nothing yet, and the lines themselves.

Nothing is answered on a line before the other side has said hello with the versions that we have.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack

from divingbell.scale import greeting
from divingbell.scale.greeting import Callee
from divingbell.scale.line import Line, Message, OnRequest, OnWord
from divingbell_inside import frames

MAX_FRONTS = 1000


class Listener:
    """Takes lines of fronts. `on_lost` hears of each one that has ended, and why."""

    def __init__(
        self,
        name: str,
        secret: str,
        on_request: OnRequest,
        on_word: OnWord,
        on_lost: Callable[[Line, str], None],
    ) -> None:
        self.name = name
        self.lines: set[Line] = set()
        self._secret = secret
        self._on_request, self._on_word, self._on_lost = on_request, on_word, on_lost
        self._strangers: set[Callee] = set()

    async def listen(
        self, host: str, port: int, tls: ssl.SSLContext | None, undo: AsyncExitStack
    ) -> int:
        """Listen until `undo`; return the port.

        Raises:
            OSError: the port can't be listened at.
        """
        tls = None if greeting.is_loopback(host) else tls
        server = await asyncio.get_running_loop().create_server(
            lambda: Callee(self._secret, self._strangers, self._make_line),
            host,
            port,
            ssl=tls,
            # Who does not go on with it is no stranger yet, and would not be counted.
            ssl_handshake_timeout=greeting.TIMEOUT if tls else None,
        )
        undo.callback(self._hang_up)
        undo.callback(server.close)
        found: int = server.sockets[0].getsockname()[1]
        return found

    def _make_line(self) -> Line:
        """Return this end of a line that was just proved."""
        line = Line("a front", opens_odd=False)
        line.on_word = self._greeted
        line.on_lost = self._lost
        if len(self.lines) >= MAX_FRONTS:
            line.lose("there are too many fronts")
        else:
            self.lines.add(line)
        return line

    def _greeted(self, line: Line, message: Message) -> None:
        if message.header.get("op") != "hello":
            raise frames.FrameError("a front that does not say hello")
        other = greeting.difference(message.header.get("versions"))
        if other:
            line.tell({"op": "hello", "refused": f"it has {other}: install the same on both"})
            line.lose("the front has other versions")
            return
        line.on_request, line.on_word = self._on_request, self._on_word
        line.tell({"op": "hello", "node": self.name, "versions": greeting.versions()})

    def _lost(self, line: Line, reason: str) -> None:
        self.lines.discard(line)
        self._on_lost(line, reason)

    def _hang_up(self) -> None:
        for line in list(self.lines):
            line.close()
        for callee in list(self._strangers):
            callee.close()
