"""The one place where the parts are wired together."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from divingbell import config, owned_folder, places, profile
from divingbell.config import Settings
from divingbell.engine import Engine
from divingbell.errors import DivingbellError, ProfileError
from divingbell.gateway import groups
from divingbell.gateway import pins as gateway_pins
from divingbell.gateway.approvals import Approver
from divingbell.gateway.fleet import Listener
from divingbell.gateway.folder import Folder
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.servers import Server
from divingbell.models import Result
from divingbell.sandbox.base import Backend
from divingbell.sandbox.local.folders import HostFolders
from divingbell.session import Session
from divingbell.telemetry import store

if TYPE_CHECKING:
    from divingbell.gateway.meaning import Meaning
    from divingbell.gateway.upstream import Upstream


class Divingbell:
    """A sandbox service for this process: `async with Divingbell() as bell: …`

    Settings come from the arguments, then the environment (`DIVINGBELL_…`), then the file that
    `config` or `DIVINGBELL_CONFIG` names, then the defaults. No file is read that was not named.
    """

    def __init__(
        self,
        backend: str | None = None,
        config: str | Path | None = None,
        *,
        progress: Callable[[str], None] | None = None,
        on_approval: Approver | None = None,
        **settings: Any,
    ) -> None:
        """Read the settings; nothing is started yet.

        `on_approval` is asked about calls of tools for which the policy says "ask".

        Raises:
            ConfigError: they can't be used.
        """
        self._begin(_load(config, {"backend": backend, **settings}), progress, on_approval)

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        progress: Callable[[str], None] | None = None,
        on_approval: Approver | None = None,
    ) -> Self:
        """Make one with settings that were read already; neither file nor environment is read."""
        bell = cls.__new__(cls)
        bell._begin(settings, progress, on_approval)
        return bell

    def _begin(
        self,
        settings: Settings,
        progress: Callable[[str], None] | None,
        on_approval: Approver | None,
    ) -> None:
        self.settings = settings
        self._progress = progress
        self._on_approval = on_approval
        self._engine: Engine | None = None
        self._gateway: Gateway | None = None
        self.backend: Backend | None = None

    async def __aenter__(self) -> Self:
        if self._engine is not None:
            raise DivingbellError("this Divingbell is running already; make another one")
        async with contextlib.AsyncExitStack() as undo:
            home = _Home()
            undo.callback(home.close)
            gateway = _make_gateway(self.settings, home, self._on_approval)
            undo.push_async_callback(gateway.stop)
            self.backend = _make_backend(self.settings, self._progress, home.servers.path)
            engine = Engine(self.settings, self.backend, gateway)
            undo.push_async_callback(engine.stop)
            # The servers come up while the sandbox does; loading the SDK takes as long as either.
            outcomes = await asyncio.gather(
                engine.start(), self._start_servers(gateway), return_exceptions=True
            )
            for outcome in outcomes:
                if outcome is not None:
                    raise outcome
            self._engine, self._gateway = engine, gateway
            self._undo = undo.pop_all()
        return self

    async def _start_servers(self, gateway: Gateway) -> None:
        if self.settings.servers:
            await asyncio.to_thread(import_module, "divingbell.gateway.upstream")
            gateway.fleet.start(self.settings.servers)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        engine, self._engine, self._gateway = self._engine, None, None
        if engine is not None:
            await self._undo.aclose()

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

    async def open(
        self, id: str | None = None, *, user: str | None = None, **limits: Any
    ) -> Session:
        """Open a session as `session` does, for those who can't keep a block; see `release`."""
        return await self._running().open(id, user, limits)

    async def release(self, session: Session) -> None:
        """Let go of a session that `open` gave; the last holder ends it."""
        await self._running().release(session)

    @property
    def gateway(self) -> Gateway:
        """The tools, and the servers that they come from."""
        self._running()
        assert self._gateway is not None
        return self._gateway

    def sessions(self) -> list[Session]:
        """The sessions that are open now."""
        return self._running().sessions()

    def _running(self) -> Engine:
        if self._engine is None:
            raise DivingbellError(
                "Divingbell is not running: use `async with Divingbell() as bell`"
            )
        return self._engine


@asynccontextmanager
async def gateway_alone(settings: Settings) -> AsyncIterator[Gateway]:
    """The gateway without a sandbox, for those who only want to look at the servers."""
    home = _Home()
    try:
        gateway = _make_gateway(replace(settings, search="words"), home, None)
        try:
            gateway.fleet.start(settings.servers, lazy=False)
            yield gateway
        finally:
            await gateway.stop()
    finally:
        home.close()


def _load(path: str | Path | None, overrides: Mapping[str, Any]) -> Settings:
    given = {key: value for key, value in overrides.items() if value is not None}
    config.check_names(given)
    return config.load(path, given)


GROUPS = "groups"


class _Home:
    """The folders of one running Divingbell that others must be able to look into."""

    def __init__(self) -> None:
        above = profile.home() / "running"
        try:
            owned_folder.make(above.parent)  # all that is kept there is kept below it
            self._folders = HostFolders(above, lambda left: groups.end_left(left / GROUPS))
            self.servers = Folder(self._folders.path / "servers")
            self.groups = groups.Groups(self._folders.path / GROUPS)
        except owned_folder.NotOurs:
            raise
        except OSError as error:
            raise ProfileError(
                f"{above} can't be used: {error.strerror}. "
                "Free some space or permit writing there, or set DIVINGBELL_HOME to another folder."
            ) from error

    def close(self) -> None:
        self.servers.close()
        self._folders.close()


def _make_gateway(settings: Settings, home: _Home, on_approval: Approver | None) -> Gateway:
    def make_upstream(
        server: Server, on_tools: Listener, on_changed: Listener, on_state: Listener
    ) -> "Upstream":
        # Here, because the SDK takes most of a second to load and many have no servers.
        from divingbell.gateway.oauth import Credentials
        from divingbell.gateway.shelf import Shelf
        from divingbell.gateway.upstream import Upstream

        return Upstream(
            server,
            on_tools=on_tools,
            on_changed=on_changed,
            on_state=on_state,
            log_folder=profile.home() / "logs",
            shelf=Shelf(profile.home() / "tool-lists"),
            credentials=Credentials(),
            groups=home.groups,
        )

    kept = places.data_folder()
    pins = gateway_pins.Pins(kept / gateway_pins.FILE_NAME if settings.policy.pin else None)
    totals = store.Store(kept / store.FILE_NAME) if settings.servers else None
    return Gateway(
        settings.policy,
        home.servers,
        pins,
        make_upstream,
        on_approval,
        totals,
        _meaning(settings.search) if settings.servers else None,
    )


def _meaning(search: str) -> Callable[[], "Meaning"] | None:
    """What loads the model for search by meaning, where it is wanted.

    Raises:
        ConfigError: it was asked for, and is not installed.
    """
    if search == "words":
        return None
    from divingbell.gateway import meaning

    if search == "meaning":
        loaded = meaning.load()
        return lambda: loaded
    return meaning.load


def _make_backend(
    settings: Settings, progress: Callable[[str], None] | None, servers: Path
) -> Backend:
    if settings.backend == "auto":
        from divingbell.sandbox.choosing import AutoBackend

        def make(wall: str) -> Backend:
            backend, _, runtime = wall.partition("-")
            chosen = replace(settings, backend=backend, runtime=runtime or "runc")
            return _make_backend(chosen, progress, servers)

        return AutoBackend(settings, make, progress)
    if settings.backend == "local":
        from divingbell.sandbox.local.backend import LocalBackend

        return LocalBackend(settings, progress, servers)
    if settings.backend == "docker":
        from divingbell.sandbox.docker.backend import DockerBackend

        return DockerBackend(settings, progress, servers)
    assert settings.backend == "gvisor"
    from divingbell.sandbox.gvisor.backend import GVisorBackend

    return GVisorBackend(settings, progress, servers)
