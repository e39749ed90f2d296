"""The link of a replica to the gateway that it shares: its line, laid again whenever it broke."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from divingbell import logs
from divingbell.errors import ConfigError, DivingbellError, ToolFailed
from divingbell.scale import greeting
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.gateway.told_settings import settings_told
from divingbell.scale.line import Line, LineLost
from divingbell.settings.config import Settings

log = logs.logger("divingbell")

PATIENCE = 10.0
"""Seconds that a call waits for a gateway that is away: Ray starts one that died again in two to
five."""
PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two attempts: twice as many after each."""

Find = Callable[[], Awaitable[NodeAddress]]
"""Returns where the gateway is, and starts it where there is none.

Raises:
    DivingbellError, OSError: it can't be said.
"""


class GatewayLink:
    """The shared gateway, as one replica reaches it."""

    def __init__(self, find: Find, tls: ssl.SSLContext | None = None) -> None:
        self._find = find
        self._tls = tls
        self._line: Line | None = None
        self._laid = asyncio.Event()
        self._broke = asyncio.Event()
        self._reason = "it is still starting"
        self.on_laid: Callable[[Line], Awaitable[None]] | None = None
        """Awaited with each line that is laid, before anything else is asked."""
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Lay the line, and keep it laid.

        Raises:
            LineLost, SandboxUnavailable: the gateway can't be reached.
            ConfigError: it can't be used, or has other versions.
        """
        await self._lay()
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """Hang up."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        if self._line is not None:
            self._line.close()

    @property
    def reason(self) -> str:
        """The reason why it is away, in words."""
        return self._reason

    async def settings(self) -> Settings:
        """Return the settings of the service, as replicas are told of them.

        Raises:
            DivingbellError: the gateway went away, or a setting can't be used here.
        """
        message = await self.laid().request({"op": "settings"}).receive()
        return settings_told(message.body)

    def laid(self) -> Line:
        """Return the line as it is now.

        Raises:
            LineLost: there is none.
        """
        line = self.current
        if line is None:
            raise LineLost(self._reason)
        return line

    @property
    def current(self) -> Line | None:
        """The line as it is now; None where there is none."""
        return None if self._line is None or self._line.lost is not None else self._line

    async def until_laid(self) -> Line:
        """Return the line, however long it takes."""
        while True:
            try:
                return self.laid()
            except LineLost:
                await self._laid.wait()

    async def line(self, what: str) -> Line:
        """Return the line, for a call; wait a moment where there is none.

        Raises:
            ToolFailed: the gateway stays away, so nothing is called.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.until_laid()
        except TimeoutError:
            raise self.away(what) from None

    def away(self, what: str) -> ToolFailed:
        """Return the error for what can't be asked because the gateway is away."""
        return ToolFailed(
            f"{what}: the gateway that all replicas of this service share can't be reached, so no "
            f"call was made ({self._reason}). Try again in a minute; whoever runs the service "
            "finds out more with `ray status` and in Ray's logs",
            "tool_unavailable",
        )

    async def _lay(self) -> None:
        line = Line("the shared gateway", opens_odd=True)
        await greeting.call(await self._find(), line, {}, self._tls)
        line.on_word, line.on_lost = lambda line, message: None, lambda line, reason: None
        try:
            if self.on_laid is not None:
                await self.on_laid(line)
        except BaseException:
            line.close()
            raise
        self._line, line.on_lost = line, self._lost
        if line.lost is not None:
            raise LineLost(line.lost)
        self._broke.clear()
        self._laid.set()

    def _lost(self, line: Line, reason: str) -> None:
        self._reason = reason
        self._laid.clear()
        self._broke.set()

    async def _keep(self) -> None:
        while True:
            await self._broke.wait()
            log.warning("the shared gateway is away: %s", self._reason)
            pause = PAUSE
            while not self._laid.is_set():
                try:
                    await self._lay()
                    log.info("the shared gateway is back")
                except (DivingbellError, OSError) as error:
                    self._reason = str(error)
                    if isinstance(error, ConfigError):
                        log.error("the shared gateway can't be used: %s", error)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
