"""The one place where the parts are wired together."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from divingbell.border.border import Border, OpenBorder
from divingbell.errors import DivingbellError, ProfileError
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.policy import pins as gateway_pins
from divingbell.gateway.policy.approvals import Approver
from divingbell.gateway.upstream.fleet import Listener, load_sdk
from divingbell.gateway.upstream.transport import orphan_groups
from divingbell.host import owned_folder, places, profile
from divingbell.host.folders import HostFolders
from divingbell.journal import log_lines, totals
from divingbell.journal.journal import Journal
from divingbell.journal.recorder import LedgerRecorder
from divingbell.models import Result
from divingbell.principal import Principal
from divingbell.sandbox import registry
from divingbell.sandbox.auto import AutoBackend
from divingbell.sandbox.base import Backend, BackendRequest
from divingbell.session.base import SessionHandle
from divingbell.session.engine import Engine
from divingbell.session.needs import Needs
from divingbell.session.ownership import OwnedSessions
from divingbell.session.session import Session
from divingbell.session.starting import Starting, Tell
from divingbell.settings import config
from divingbell.settings.config import Settings
from divingbell.settings.servers import Server
from divingbell.shares import loop_thread

if TYPE_CHECKING:
    from divingbell.gateway.search.embeddings import Embeddings
    from divingbell.gateway.upstream.upstream import Upstream


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
        border: Border | None = None,
        **settings: Any,
    ) -> None:
        """Read the settings; nothing is started yet.

        `on_approval` is asked about calls of tools for which the policy says "ask". `border` is
        passed by everything that goes to a model or comes from one; without one nothing is changed.

        Raises:
            ConfigError: they can't be used.
        """
        found = _load(config, {"backend": backend, **settings})
        self._begin(found, progress, on_approval, border=border)

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        progress: Callable[[str], None] | None = None,
        on_approval: Approver | None = None,
        needs: Needs | None = None,
        scratch: Path | None = None,
        border: Border | None = None,
    ) -> Self:
        """Make one with settings that were read already; neither file nor environment is read.

        `needs` is for a command that runs one piece of code: only what that needs is made ready.
        `scratch` is for one that shall leave no trace: what servers say is logged in that folder,
        and nothing of them is remembered or looked up (pins, lists of tools, sign-ins).

        Raises:
            ConfigError: they name a backend that is not there, or one below the minimum.
        """
        bell = cls.__new__(cls)
        bell._begin(settings, progress, on_approval, needs, scratch, border)
        return bell

    def _begin(
        self,
        settings: Settings,
        progress: Callable[[str], None] | None,
        on_approval: Approver | None,
        needs: Needs | None = None,
        scratch: Path | None = None,
        border: Border | None = None,
    ) -> None:
        registry.check(settings)
        self.settings = settings
        self._scratch = scratch
        self._needs = needs
        self._progress = progress
        self._on_approval = on_approval
        self._engine: Engine | None = None
        self._gateway: Gateway | None = None
        self._starting: Starting | None = None
        self.backend: Backend | None = None
        self._owned = OwnedSessions(self._open_for)
        self.journal = Journal()
        """Told of everything that happens."""
        self._border = border or OpenBorder()

    async def __aenter__(self) -> Self:
        await self._enter()
        try:
            await self.ready()
        except BaseException:
            await self._leave()
            raise
        return self

    @asynccontextmanager
    async def starting(self) -> AsyncIterator[Self]:
        """Begin as `async with` does, and enter the block while the sandbox still starts.

        Servers and settings are known from the beginning. `open` and `session` wait for the
        sandbox; `ready` does, too, and tells how it goes.

        Raises:
            DivingbellError: the settings can't be used, or this machine can do it in no case.
        """
        await self._enter()
        try:
            yield self
        finally:
            await self._leave()

    async def ready(self, tell: Tell | None = None) -> None:
        """Wait until the sandbox is up; `tell` hears what is waited for.

        Raises:
            SandboxUnavailable, ProfileError: what kept it from starting.
        """
        self._running()
        assert self._starting is not None
        await self._starting.wait(tell)

    async def _enter(self) -> None:
        if self._engine is not None:
            raise DivingbellError("this Divingbell is running already; make another one")
        loop_thread.go_first()
        async with contextlib.AsyncExitStack() as undo:
            home = _Home()
            undo.callback(home.close)
            gateway = _make_gateway(
                self.settings, home, self.journal, self.border, self._on_approval, self._scratch
            )
            undo.push_async_callback(gateway.stop)
            self._ledgers = await self._subscribe(gateway, undo)
            starting = Starting(self._progress)
            self.backend = _make_backend(
                self.settings, starting.report, home.servers.path, self._needs
            )
            engine = Engine(
                self.settings, self.backend, gateway, self.journal, self.border, self._ledgers
            )
            undo.push_async_callback(engine.stop)
            undo.push_async_callback(starting.stop)
            # The servers come up while the sandbox does; loading the SDK takes as long as either.
            starting.begin(engine.start())
            await self._start_servers(gateway)
            self._engine, self._gateway, self._starting = engine, gateway, starting
            self._undo = undo.pop_all()

    async def _subscribe(self, gateway: Gateway, undo: contextlib.AsyncExitStack) -> LedgerRecorder:
        """Subscribe those who keep account to the journal; the ledger comes before the totals."""
        ledgers = LedgerRecorder(gateway.catalog.tools, lambda: bool(gateway.fleet))
        undo.push_async_callback(ledgers.close)

        def changed(kind: str, server: str) -> None:
            if kind == "tools":
                ledgers.count_soon(gateway.catalog.tools(server))

        undo.callback(gateway.on_change(changed))
        undo.callback(self.journal.watch(ledgers.take))
        if self.settings.servers and self._scratch is None:
            kept = totals.Totals(places.data_folder() / totals.FILE_NAME)
            undo.push_async_callback(kept.close)
            undo.callback(self.journal.watch(kept.take))
        undo.callback(self.journal.watch(log_lines.write))
        return ledgers

    async def _start_servers(self, gateway: Gateway) -> None:
        entries = self.settings.servers
        at_once = {entry.name for entry in entries} if self._needs is None else self._needs.servers
        if at_once:
            await load_sdk()
        for entry in entries:
            gateway.fleet.add(entry, later=entry.name not in at_once)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
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
        await self.ready()
        session = await engine.open(id, _principal(user), limits)
        try:
            yield session
        finally:
            await engine.release(session)

    async def execute(
        self,
        code: str,
        *,
        context: Mapping[str, Any] | None = None,
        argv: Sequence[str] | None = None,
        timeout: float | None = None,
        **limits: Any,
    ) -> Result:
        """Run code once, in a fresh session that ends with it."""
        async with self.session(**limits) as session:
            return await session.run(code, context=context, argv=argv, timeout=timeout)

    async def open(
        self, id: str | None = None, *, user: str | None = None, **limits: Any
    ) -> Session:
        """Open a session as `session` does, for those who can't keep a block; see `release`."""
        engine = self._running()
        await self.ready()
        return await engine.open(id, _principal(user), limits)

    async def release(self, session: Session) -> None:
        """Let go of a session that `open` gave; the last holder ends it."""
        await self._running().release(session)

    @property
    def border(self) -> Border:
        """What is passed by everything that goes to a model, or comes from one."""
        return self._border

    @property
    def owned(self) -> OwnedSessions:
        """The sessions that surfaces hold for those who come in, whichever way they come."""
        return self._owned

    async def _open_for(self, id: str, principal: Principal) -> SessionHandle:
        engine = self._running()
        await self.ready()
        return await engine.open(id, principal, {})

    @property
    def ledgers(self) -> LedgerRecorder:
        """The account of tokens."""
        self._running()
        return self._ledgers

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
async def gateway_alone(
    settings: Settings, journal: Journal | None = None
) -> AsyncIterator[Gateway]:
    """Open the gateway without a sandbox, for those who only want to look at the servers."""
    home = _Home()
    try:
        gateway = _make_gateway(
            replace(settings, search="words"), home, journal or Journal(), OpenBorder()
        )
        try:
            gateway.fleet.start(settings.servers, lazy=False)
            yield gateway
        finally:
            await gateway.stop()
    finally:
        home.close()


def _principal(user: str | None) -> Principal:
    return Principal("" if user is None else user, client="library")


def _load(path: str | Path | None, overrides: Mapping[str, Any]) -> Settings:
    return config.load(path, overrides)


GROUPS = "groups"


class _Home:
    """The folders of one running Divingbell that others must be able to look into."""

    def __init__(self) -> None:
        above = profile.home() / "running"
        try:
            owned_folder.make(above.parent)  # all that is kept there is kept below it
            self._folders = HostFolders(
                above, lambda left: orphan_groups.end_orphans(left / GROUPS)
            )
            self.servers = Folder(self._folders.path / "servers")
            self.process_groups = orphan_groups.ProcessGroups(self._folders.path / GROUPS)
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


def _make_gateway(
    settings: Settings,
    home: _Home,
    journal: Journal,
    border: Border,
    on_approval: Approver | None = None,
    scratch: Path | None = None,
) -> Gateway:
    def make_upstream(
        server: Server, on_tools: Listener, on_changed: Listener, on_state: Listener
    ) -> "Upstream":
        # Here, because the SDK takes most of a second to load and many have no servers.
        from divingbell.gateway.sign_in.oauth import Credentials
        from divingbell.gateway.upstream.tool_list_cache import ToolListCache
        from divingbell.gateway.upstream.upstream import Upstream

        return Upstream(
            server,
            on_tools=on_tools,
            on_changed=on_changed,
            on_state=on_state,
            log_folder=(scratch or profile.home()) / "logs",
            tool_list_cache=None if scratch else ToolListCache(profile.home() / "tool-lists"),
            credentials=None if scratch else Credentials(),
            process_groups=home.process_groups,
        )

    kept = places.data_folder()
    is_pinned = settings.policy.pin and scratch is None
    pins = gateway_pins.Pins(kept / gateway_pins.FILE_NAME if is_pinned else None)
    return Gateway(
        settings.policy,
        home.servers,
        pins,
        make_upstream,
        journal,
        border,
        on_approval,
        _embeddings_loader(settings) if settings.servers else None,
    )


def _embeddings_loader(settings: Settings) -> Callable[[], "Embeddings"] | None:
    """Return what loads the model for search by meaning, where it is wanted.

    Raises:
        ConfigError: it was asked for, and is not there.
    """
    if settings.search == "words":
        return None
    from divingbell.gateway.search import embeddings
    from divingbell.gateway.search.encoders import minilm, onnx

    model = Path(settings.search_model) if settings.search_model else None
    if settings.search == "meaning":
        loaded = embeddings.load(model=model)
        return lambda: loaded
    if model is not None:
        onnx.check(model)
    elif not minilm.is_installed():
        return None
    return lambda: embeddings.load(model=model)


def _make_backend(
    settings: Settings,
    progress: Callable[[str], None],
    servers: Path,
    needs: Needs | None,
) -> Backend:
    def make(row: registry.Row) -> Backend:
        chosen = replace(settings, backend=row.name)
        if needs is not None and row.preloads_what_is_needed:
            chosen = replace(chosen, preload=needs.modules)
        request = BackendRequest(
            name=row.name,
            settings=chosen,
            progress=progress,
            servers=servers,
            many=needs is None,
        )
        return registry.make(row, request)

    if settings.backend == registry.AUTO:
        return AutoBackend(settings, make, progress)
    return make(registry.find(settings.backend))
