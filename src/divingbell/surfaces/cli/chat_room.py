"""The room of a conversation: sandbox, session, model and agent, opened behind the prompt."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from divingbell.errors import DivingbellError

if TYPE_CHECKING:
    from divingbell.agent.agent import Agent
    from divingbell.agent.model import Model
    from divingbell.app import Divingbell
    from divingbell.gateway.context import Asker
    from divingbell.session.base import SessionHandle
    from divingbell.settings.config import Settings

LEAVING_PATIENCE = 10.0
"""Seconds that a room may take to close."""

MakeModel = Callable[[], Awaitable["Model"]]
Furnish = Callable[["SessionHandle"], Awaitable[None]]
"""Called with each session before it is used."""


@dataclass(frozen=True)
class Place:
    """What there is once the room is open."""

    bell: "Divingbell"
    session: "SessionHandle"
    agent: "Agent"


class Room:
    """Opens in a task of its own, which also closes it; the prompt does not wait for it."""

    def __init__(
        self,
        settings: "Settings",
        make_model: MakeModel,
        furnish: Furnish,
        asker: "Callable[[Divingbell, SessionHandle], Asker | None]",
        on_state: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._make_model = make_model
        self._furnish = furnish
        self._asker = asker
        self._on_state = on_state
        self._place: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        self._done_with_session = asyncio.Event()
        self._leaving = False
        self.failure: BaseException | None = None
        """What kept it from opening."""

    @contextlib.asynccontextmanager
    async def opening(self) -> AsyncIterator["Room"]:
        """Open it meanwhile, and close it at the end of the block."""
        holding = asyncio.create_task(self._hold())
        try:
            yield self
        finally:
            self._leaving = True
            self._done_with_session.set()
            if not self._place.done():
                holding.cancel()
            # What it could not do is known by now, or nobody has asked for it.
            await asyncio.wait({holding}, timeout=LEAVING_PATIENCE)
            if not holding.done():
                holding.cancel()
                await asyncio.wait({holding}, timeout=LEAVING_PATIENCE)

    @property
    def is_open(self) -> bool:
        return self._place.done() and self.failure is None

    async def place(self) -> Place:
        """Wait until it is open, and return what is there.

        Raises:
            DivingbellError: what kept it from opening.
        """
        return await asyncio.shield(self._place)

    def renew_session(self) -> None:
        """Begin a new session in the place of one that has ended; the conversation goes on."""
        self._place = asyncio.get_running_loop().create_future()
        self._done_with_session.set()

    def on_failure(self, call: Callable[[BaseException], None]) -> None:
        """Call this if it can't be opened."""

        def done(place: "asyncio.Future[Place]") -> None:
            if not place.cancelled() and (error := place.exception()) is not None:
                call(error)

        self._place.add_done_callback(done)

    async def _hold(self) -> None:
        model: Model | None = None
        try:
            # Beside the event loop, which draws what is typed meanwhile.
            await asyncio.to_thread(_load)
            from divingbell.app import Divingbell
            from divingbell.session.needs import Needs
            from divingbell.surfaces.cli.approving import TerminalApprover

            self._on_state("starting the sandbox")
            settings = self._settings
            needs = Needs(settings.preload, tuple(entry.name for entry in settings.servers))
            bell = Divingbell.of(
                settings, progress=self._on_state, on_approval=TerminalApprover(), needs=needs
            )
            async with bell.starting():
                model = await self._make_model()
                await self._sessions(bell, model)
        except (DivingbellError, OSError, asyncio.CancelledError) as error:
            self.failure = error
            if not self._place.done():
                if isinstance(error, asyncio.CancelledError):
                    self._place.cancel()
                else:
                    self._place.set_exception(error)
                    self._place.exception()  # whoever asks is told; nobody has to ask
        finally:
            if model is not None:
                await model.close()

    async def _sessions(self, bell: "Divingbell", model: "Model") -> None:
        from divingbell.agent.opening import open_agent

        agent: Agent | None = None
        while not self._leaving:
            self._done_with_session.clear()
            async with bell.session(idle_timeout=math.inf) as session:
                await self._furnish(session)
                agent = await open_agent(
                    bell,
                    session,
                    model if agent is None else agent.model,
                    asker=self._asker(bell, session),
                    history=() if agent is None else agent.history,
                )
                self._on_state("")
                self._place.set_result(Place(bell, session, agent))
                await self._done_with_session.wait()


def _load() -> None:
    """Load what takes long."""
    import divingbell.agent.opening
    import divingbell.app
    import divingbell.surfaces.cli.approving  # noqa: F401
