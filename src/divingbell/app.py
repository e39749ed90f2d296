"""The one place where the parts are wired together."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from divingbell import config
from divingbell.config import Settings
from divingbell.engine import Engine
from divingbell.errors import ConfigError, DivingbellError
from divingbell.models import Result
from divingbell.sandbox.base import Backend
from divingbell.session import Session


class Divingbell:
    """A sandbox service for this process: `async with Divingbell() as bell: …`

    Settings come from the arguments, then the environment (`DIVINGBELL_…`), then the file
    (`config`, or `divingbell.toml` where there is one), then the defaults.
    """

    def __init__(
        self,
        backend: str | None = None,
        config: str | Path | None = None,
        *,
        progress: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> None:
        """Read the settings; nothing is started yet.

        Raises:
            ConfigError: they can't be used.
        """
        self.settings = _load(config, {"backend": backend, **settings})
        self._progress = progress
        self._engine: Engine | None = None
        self.backend: Backend | None = None

    async def __aenter__(self) -> Self:
        if self._engine is not None:
            raise DivingbellError("this Divingbell is running already; make another one")
        self.backend = _make_backend(self.settings, self._progress)
        engine = Engine(self.settings, self.backend)
        try:
            await engine.start()
        except BaseException:
            await engine.stop()
            raise
        self._engine = engine
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.stop()

    @asynccontextmanager
    async def session(
        self, id: str | None = None, *, user: str | None = None, **limits: Any
    ) -> AsyncIterator[Session]:
        """Open a session, or join the one that this user has open under this id.

        `limits` are timeout, memory and so on, for this session. Leaving the block ends the
        session, unless it is still held by another block.

        Raises:
            CapacityError: there is no place, and none became free in time.
            SandboxUnavailable: the sandbox could not be made.
        """
        engine = self._running()
        session = await engine.open(id, user, limits)
        try:
            yield session
        finally:
            await engine.release(session)

    async def execute(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        **limits: Any,
    ) -> Result:
        """Run code once, in a fresh session that ends with it."""
        async with self.session(**limits) as session:
            return await session.run(code, context=context, timeout=timeout)

    def sessions(self) -> list[Session]:
        """The sessions that are open now."""
        return self._running().sessions()

    def _running(self) -> Engine:
        if self._engine is None:
            raise DivingbellError(
                "Divingbell is not running: use `async with Divingbell() as bell`"
            )
        return self._engine


def _load(path: str | Path | None, overrides: Mapping[str, Any]) -> Settings:
    given = {key: value for key, value in overrides.items() if value is not None}
    config.check_names(given)
    return config.load(path, given)


def _make_backend(settings: Settings, progress: Callable[[str], None] | None) -> Backend:
    if settings.backend == "local":
        from divingbell.sandbox.local.backend import LocalBackend

        return LocalBackend(settings, progress)
    raise ConfigError(f'backend = "{settings.backend}" is not part of this version; "local" is')
