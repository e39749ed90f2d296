"""The one place where the parts are wired together."""

import atexit
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from divingbell import logs
from divingbell.border.border import Border, Masking, OpenBorder
from divingbell.border.privacy.blotter import BLOTTER
from divingbell.border.written_names import WrittenNames
from divingbell.errors import ConfigError, DivingbellError, InvalidInput
from divingbell.gateway.functions.function import (
    HostFunction,
    Tools,
    check_names,
    functions_of,
)
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.policy.approvals import Approver
from divingbell.gateway.policy.privacy_lines import PrivacyLines
from divingbell.gateway.shared import SharedParts
from divingbell.gateway.upstream.fleet import load_sdk
from divingbell.host import descriptors, places
from divingbell.journal import log_lines, totals
from divingbell.journal.journal import Journal, Watcher
from divingbell.journal.readings import Readings
from divingbell.journal.recorder import LedgerRecorder
from divingbell.models import Result, SessionLimits
from divingbell.parts import (
    Home,
    make_audit,
    make_backend,
    make_border,
    make_gateway,
    offer_skills,
    open_skills,
)
from divingbell.principal import Principal
from divingbell.review.finding import Review
from divingbell.review.reviewer import Reviewer
from divingbell.sandbox import registry
from divingbell.sandbox.auto import AutoBackend
from divingbell.sandbox.base import Backend
from divingbell.session import notebook
from divingbell.session.base import SessionHandle
from divingbell.session.calls import ToolGateway
from divingbell.session.engine import Engine
from divingbell.session.keeper import SessionKeeper
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.needs import Needs
from divingbell.session.options import SessionOptions, check_name, checked
from divingbell.session.ownership import OwnedSessions
from divingbell.session.session import Session
from divingbell.session.starting import Starting, Tell
from divingbell.settings.arguments import SettingsArguments
from divingbell.settings.config import Settings, load
from divingbell.settings.privacy import PrivacyRules
from divingbell.shares import loop_thread
from divingbell.skills.skills import Skills

if TYPE_CHECKING:
    from divingbell.journal.metrics import Metrics

log = logs.logger("divingbell")
logs.screen_by(BLOTTER.blotted)
Function = TypeVar("Function", bound=Callable[..., Any])


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
        on_event: Watcher | None = None,
        border: Border | None = None,
        tools: Tools = (),
        **settings: Unpack[SettingsArguments],
    ) -> None:
        """Read the settings; nothing is started yet.

        `on_approval` is asked about calls of tools for which the policy says "ask". `on_event` is
        called with every event of the journal, from the start to the end; see `Journal.watch`.
        `border` is passed by everything that goes to a model or comes from one; without one nothing
        is changed. `tools` are functions of this program that code can call: see `tool`.

        Raises:
            ConfigError: they can't be used.
            InvalidInput: a function can't be a tool.
        """
        found = load(config, {"backend": backend, **settings})
        self._begin(found, progress, on_approval, on_event, border=border, tools=tools)

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        progress: Callable[[str], None] | None = None,
        on_approval: Approver | None = None,
        on_event: Watcher | None = None,
        needs: Needs | None = None,
        scratch: Path | None = None,
        border: Border | None = None,
        tools: Tools = (),
    ) -> Self:
        """Make one with settings that were read already; neither file nor environment is read.

        `needs` is for a command that runs one piece of code: only what that needs is made ready.
        `scratch` is for one that shall leave no trace: what servers say is logged in that folder,
        and nothing of them is remembered or looked up (pins, lists of tools, sign-ins).

        Raises:
            ConfigError: they name a backend that is not there, or one below the minimum.
            InvalidInput: a function can't be a tool.
        """
        bell = cls.__new__(cls)
        bell._begin(settings, progress, on_approval, on_event, needs, scratch, border, tools)
        return bell

    def _begin(
        self,
        settings: Settings,
        progress: Callable[[str], None] | None,
        on_approval: Approver | None,
        on_event: Watcher | None,
        needs: Needs | None = None,
        scratch: Path | None = None,
        border: Border | None = None,
        tools: Tools = (),
    ) -> None:
        registry.check(settings)
        if inspect.iscoroutinefunction(on_event):
            raise ConfigError(
                "on_event is called and not awaited: give a function without `async`, or read "
                "bell.journal.follow()"
            )
        self.settings = settings
        self._scratch = scratch
        self._needs = needs
        self._progress = progress
        self._on_approval = on_approval
        self._on_event = on_event
        self._guard: LoopGuard | None = None
        self._engine: SessionKeeper[Any] | None = None
        self._gateway: Gateway | None = None
        self._starting: Starting | None = None
        self._backend: Backend | None = None
        self._owned = OwnedSessions(self._open_for, self._reached)
        self.journal = Journal()
        """Told of everything that happens."""
        is_private = settings.privacy not in (None, "off") or settings.privacy_rules.users
        if border is not None and is_private:
            raise ConfigError("a border of your own takes the place of `privacy`: leave one out")
        self._given_border = border
        self._border = border or OpenBorder()
        self.metrics: Metrics | None = None
        """Counts for a monitor, where the setting `metrics` is "on" and it runs."""
        self._functions = functions_of(tools)
        self._shared_parts: SharedParts | None = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def start(self) -> Self:
        """Start it as `async with` does, for those who can't keep a block; see `close`.

        Raises:
            SandboxUnavailable, ProfileError: what kept it from starting.
        """
        await self._enter()
        try:
            await self.ready()
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """End every session, and all that it has started. May be called again.

        Raises:
            WrongLoop: this Divingbell belongs to another event loop.
        """
        if self._guard is None or self._guard.forked:
            return  # a fork has nothing of its own in here
        self._guard.check()
        self._guard = self._engine = self._gateway = None
        await self._undo.aclose()

    def _abandon(self, home: Home) -> None:
        """At the end of a program that has not closed it: say so, and leave nothing behind."""
        if self._guard is None or self._guard.forked:
            return
        log.warning(
            "the program ended without closing a Divingbell, so its sessions were killed: "
            "use `async with Divingbell() as bell`, or `await bell.close()`"
        )
        if self._backend is not None:
            self._backend.abandon()
        home.abandon()

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
            await self.close()

    @property
    def is_ready(self) -> bool:
        """Whether the sandbox is up."""
        return self._engine is not None and self._starting is not None and self._starting.is_up

    async def ready(self, tell: Tell | None = None) -> None:
        """Wait until the sandbox is up; `tell` hears what is waited for.

        Raises:
            SandboxUnavailable, ProfileError: what kept it from starting.
        """
        self._running()
        assert self._starting is not None
        await self._starting.wait(tell)

    async def _enter(self) -> None:
        if self._guard is not None:
            self._guard.check()
            raise DivingbellError("this Divingbell is running already; make another one")
        guard = LoopGuard()
        loop_thread.go_first()
        many = self.settings.max_sessions + self.settings.pool
        descriptors.allow_for(many if self._needs is None else 1)
        async with contextlib.AsyncExitStack() as undo:
            if self._on_event is not None:
                undo.callback(self.journal.watch(self._on_event))
            home = Home()
            undo.callback(home.close)
            self._border = self._given_border or await make_border(
                self.settings, undo, self._scratch
            )
            await make_audit(self.settings, self.journal, self.border, undo, self._scratch)
            gateway = make_gateway(
                self.settings,
                home,
                self.journal,
                self.border,
                self._on_approval,
                self._scratch,
                self._shared_parts,
            )
            undo.push_async_callback(gateway.stop)
            self._ledgers = await self._subscribe(gateway, undo)
            self._skills = open_skills(self.settings, self.journal, undo, self._scratch)
            offer_skills(
                self.settings,
                self._skills,
                gateway,
                self.border,
                self.journal,
                self._run_apart,
                undo,
            )
            lines = self._privacy_lines(gateway, undo)
            starting = Starting(self._progress)
            engine = self._make_engine(starting, home, gateway, guard)
            undo.push_async_callback(engine.stop)
            undo.push_async_callback(starting.stop)
            # The servers come up while the sandbox does; loading the SDK takes as long as either.
            starting.begin(engine.start())
            await self._start_servers(gateway)
            lines.check_servers(gateway.catalog.servers)
            self._engine, self._gateway, self._starting = engine, gateway, starting
            self._guard = guard
            atexit.register(self._abandon, home)
            undo.callback(atexit.unregister, self._abandon)
            self._undo = undo.pop_all()

    def _make_engine(
        self, starting: Starting, home: Home, gateway: Gateway, guard: LoopGuard
    ) -> SessionKeeper[Any]:
        """Return what has the sessions: this process, or nodes.

        Raises:
            ConfigError: the cluster can't be used as it is set up.
        """
        around = gateway, self.journal, self.border, self._ledgers, guard
        if self.settings.backend == registry.RAY:
            # Here, because most have no use for it.
            from divingbell.scale import clusters
            from divingbell.scale.engine import RemoteEngine

            cluster = clusters.cluster_of(self.settings)
            return RemoteEngine(self.settings, cluster, home.servers, *around)
        self._backend = make_backend(self.settings, starting.report, home.servers.path, self._needs)
        return Engine(self.settings, self._backend, *around)

    async def _subscribe(self, gateway: Gateway, undo: contextlib.AsyncExitStack) -> LedgerRecorder:
        """Subscribe those who keep account to the journal; the ledger comes before the totals."""
        ledgers = LedgerRecorder(gateway.catalog.tools, lambda: bool(gateway.fleet))
        undo.push_async_callback(ledgers.close)

        def changed(kind: str, server: str) -> None:
            if kind == "tools":
                ledgers.count_soon(gateway.catalog.tools(server))

        undo.callback(gateway.on_change(changed))
        undo.callback(self.journal.watch(ledgers.take))
        if self._scratch is None:
            folder = places.data_folder()
            names = WrittenNames(self.settings.vault, folder, log.warning)
            kept = totals.Totals(
                folder / totals.FILE_NAME,
                self.settings.experiment.arm_of,
                ledgers.is_read,
                names.of,
                None if self._shared_parts is None else self._shared_parts.count,
            )
            undo.push_async_callback(kept.close)
            undo.callback(self.journal.watch(kept.take))
        undo.callback(self.journal.watch(log_lines.write))
        if self.settings.metrics == "on":
            self._start_metrics(undo)
        if self.settings.traces == "on":
            from divingbell.journal.traces import Traces

            undo.callback(self.journal.watch(Traces().take))
        return ledgers

    def _start_metrics(self, undo: contextlib.AsyncExitStack) -> None:
        # Here, because most have no use for it.
        from divingbell.journal.metrics import Metrics, Surroundings

        settings = self.settings
        surroundings = Surroundings(
            servers=[entry.name for entry in settings.servers],
            backend=self._backend_name,
            arm_of=settings.experiment.arm_of,
            price=settings.token_price,
            read=self._read,
        )
        self.metrics = metrics = Metrics(surroundings)
        metrics.start()
        undo.push_async_callback(metrics.close)
        undo.callback(self.journal.watch(metrics.take))

    def _backend_name(self) -> str:
        backend = self._backend
        return backend.name if isinstance(backend, AutoBackend) else self.settings.backend

    async def _read(self) -> Readings:
        """Return what a monitor is told of the sessions and of what was hidden."""
        found = Readings() if self._engine is None else await self._engine.read()
        masked = self._border.masked.by_kind() if isinstance(self._border, Masking) else {}
        return replace(found, masked=masked, unrecorded=self.journal.unrecorded)

    def _privacy_lines(self, gateway: Gateway, undo: contextlib.AsyncExitStack) -> PrivacyLines:
        """Have lines of [privacy_rules] compared with the tools that servers tell of."""
        rules = self.settings.privacy_rules
        if self.settings.privacy in (None, "off") and not rules.users:
            rules = PrivacyRules()
        lines = PrivacyLines(
            rules, lambda server: [tool.full_name for tool in gateway.catalog.tools(server)]
        )
        undo.callback(gateway.on_change(lines.tools_changed))
        return lines

    async def _start_servers(self, gateway: Gateway) -> None:
        entries = self.settings.servers
        at_once = {entry.name for entry in entries} if self._needs is None else self._needs.servers
        if at_once:
            await load_sdk()
        for entry in entries:
            gateway.fleet.add(entry, later=entry.name not in at_once)
        if self._functions:
            gateway.host.share(self._functions)
            await gateway.fleet.written()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def session(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        idle_timeout: float | None = None,
        **limits: Unpack[SessionLimits],
    ) -> AsyncIterator[Session]:
        """Open a session, or join the one that this user has open under this id.

        `env` is in `os.environ` of the code, which can read it. `labels` are for whoever looks for
        sessions. `idle_timeout` is in seconds: None for the setting, `math.inf` for never. `limits`
        are timeout, memory and so on, for this session. None of these changes a session that is
        joined. Leaving the block ends the session, unless it is still held by another block.

        Raises:
            InvalidInput: the id, the user, `env`, `labels` or `idle_timeout` can't be used.
            CapacityError: there is no place, and none became free in time.
            SandboxUnavailable: the sandbox could not be made.
            WrongLoop: this Divingbell belongs to another event loop or process.
        """
        options = checked(env, labels, idle_timeout)
        engine = self._running()
        session = await self._open(id, _principal(user), limits, options)
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
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        tools: Tools = (),
        **limits: Unpack[SessionLimits],
    ) -> Result:
        """Run code once, in a fresh session that ends with it; takes what `session` does.

        `tools` are functions for it alone.
        """
        async with self.session(user=user, env=env, labels=labels, **limits) as session:
            return await session.run(code, context=context, argv=argv, tools=tools)

    async def review(self, code: str) -> Review:
        """Return what code would try to do, and what the rules say about it. Nothing is run.

        It goes by the settings of `review`, even where these turn reviews off, and by the limits
        that a session has unless others are named.

        Raises:
            InvalidInput: the code is no text.
            WrongLoop: this Divingbell belongs to another event loop.
        """
        self._check_loop()
        if not isinstance(code, str):
            raise InvalidInput(f"code must be text, not {type(code).__name__}")
        limits = self.settings.limits
        reviewer = Reviewer(self.settings.review)
        return await reviewer.look(code, limits, limits.timeout, lambda seconds: None)

    async def open(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        idle_timeout: float | None = None,
        **limits: Unpack[SessionLimits],
    ) -> Session:
        """Open a session as `session` does, for those who can't keep a block; see `release`."""
        options = checked(env, labels, idle_timeout)
        return await self._open(id, _principal(user), limits, options)

    async def _open(
        self,
        id: str | None,
        principal: Principal,
        limits: Mapping[str, Any],
        options: SessionOptions | None = None,
    ) -> Session:
        engine = self._running()
        await self.ready()
        return await engine.open(id, principal, limits, options)

    async def open_behind(self, door: ToolGateway, principal: Principal) -> Session:
        """Open a fresh session whose calls this door alone answers; see `release`.

        Raises: as `session`.
        """
        engine = self._running()
        await self.ready()
        return await engine.open(None, principal, {}, door=door)

    async def _run_apart(
        self, principal: Principal, door: ToolGateway, code: str, seconds: float
    ) -> Result:
        """Run code in a fresh session of a user, whose calls this door alone answers."""
        session = await self.open_behind(door, Principal(principal.user, client=principal.client))
        try:
            return await session.run(code, timeout=seconds)
        finally:
            await self.release(session)

    async def release(self, session: Session) -> None:
        """Let go of a session that `open` gave; the last holder ends it."""
        await self._running().release(session)

    @overload
    def tool(self, function: Function) -> Function: ...

    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        direct: bool = False,
    ) -> Callable[[Function], Function]: ...

    def tool(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        direct: bool = False,
    ) -> Function | Callable[[Function], Function]:
        """Make a function a tool of all sessions, as a decorator: `@bell.tool`, now or before.

        Code calls it as `servers.host.NAME`. The options are those of `HostFunction`.

        Returns:
            The function as it is.

        Raises:
            InvalidInput: it can't be a tool, or there is one of that name.
            ConfigError: a server is called `host`.
        """

        def add(given: Function) -> Function:
            made: Any = given  # who has given a name to a lambda brings a HostFunction
            if not isinstance(made, HostFunction):
                made = HostFunction(
                    given, name=name, description=description, read_only=read_only, direct=direct
                )
            self._share([*self._functions, made])
            return given

        return add if function is None else add(function)

    def remove_tool(self, name: str) -> None:
        """Take a function away from all sessions; calls of it that are under way go on.

        Raises:
            InvalidInput: there is none of that name.
        """
        self._check_loop()
        left = [each for each in self._functions if each.name != name]
        if len(left) == len(self._functions):
            raise InvalidInput(f"there is no function {name!r:.80} among the tools")
        self._share(left)

    def _check_loop(self) -> None:
        """Raise WrongLoop if it runs in another event loop than this."""
        if self._guard is not None:
            self._guard.check()

    def _share(self, functions: list[HostFunction]) -> None:
        self._check_loop()
        check_names(functions)
        if self._gateway is not None:
            self._gateway.host.share(functions)
        self._functions = functions

    @property
    def border(self) -> Border:
        """What is passed by everything that goes to a model, or comes from one."""
        return self._border

    @property
    def owned(self) -> OwnedSessions:
        """The sessions that surfaces hold for those who come in, whichever way they come."""
        return self._owned

    def _share_gateway(self, shared: SharedParts) -> None:
        """Have parts of the gateway kept elsewhere, once for several processes; before the start.

        Raises:
            DivingbellError: it runs already.
        """
        if self._guard is not None:
            raise DivingbellError("this Divingbell is running already; make another one")
        self._shared_parts = shared

    def _share_sessions(self) -> None:
        """Have sessions go on when this process ends, for others of the cluster that serve the same
        users; and find what those have opened.

        Raises:
            ConfigError: the sessions are in this process.
        """
        from divingbell.scale.engine import RemoteEngine
        from divingbell.scale.shared import ClusterSessions

        engine = self._running()
        if not isinstance(engine, RemoteEngine):
            raise ConfigError('sessions are shared with other processes only by backend = "ray"')
        engine.ends_sessions = False

        async def join(id: str, principal: Principal) -> SessionHandle | None:
            return await self._open(id, principal, {})

        self._owned.shared = ClusterSessions(engine.cluster, join)

    async def _open_for(
        self,
        id: str,
        principal: Principal,
        limits: Mapping[str, Any],
        options: SessionOptions | None,
    ) -> SessionHandle:
        return await self._open(id, principal, limits, options)

    def _reached(self, principal: Principal, session: SessionHandle) -> None:
        self.gateway.labels.join(principal, session.key)
        self.border.join(principal, session.principal)

    @property
    def ledgers(self) -> LedgerRecorder:
        """The account of tokens."""
        self._started()
        return self._ledgers

    @property
    def gateway(self) -> Gateway:
        """The tools, and the servers that they come from."""
        self._started()
        assert self._gateway is not None
        return self._gateway

    @property
    def skills(self) -> Skills:
        """The skills that are kept for each user, whether code may use them or not."""
        self._started()
        return self._skills

    def sessions(
        self, *, user: str | None = None, labels: Mapping[str, str] | None = None
    ) -> list[Session]:
        """Return the sessions that are open now; nobody has to let go of these.

        With `user` only those of that user, with `labels` only those that have all of them.

        Raises:
            InvalidInput: the user or the labels can't be any.
        """
        return self._running().sessions(user, labels)

    def get(self, id: str, *, user: str | None = None) -> Session | None:
        """Return the session that this user has open under this id, None if there is none.

        It is not joined: it ends when those who opened it let go.

        Raises:
            InvalidInput: the id or the user is something else than a text.
        """
        return self._running().find(id, _principal(user))

    def __repr__(self) -> str:
        return f"<Divingbell {self.settings.backend!r}: {self._state()}>"

    def _repr_html_(self) -> str:
        return notebook.table(repr(self), self._engine.sessions() if self._engine else [])

    def _state(self) -> str:
        if self._engine is None:
            return "not running"
        return notebook.counted(len(self._engine.sessions()), "session")

    def _running(self) -> SessionKeeper[Any]:
        """Return the engine, for the loop that this Divingbell belongs to."""
        engine = self._started()
        assert self._guard is not None
        self._guard.check()
        return engine

    def _started(self) -> SessionKeeper[Any]:
        if self._engine is None:
            raise DivingbellError(
                "Divingbell is not running: use `async with Divingbell() as bell`, or "
                "`await bell.start()`; without await, there is divingbell.sync"
            )
        return self._engine


def _principal(user: str | None) -> Principal:
    check_name("user", user)
    return Principal("" if user is None else user, client="library")
