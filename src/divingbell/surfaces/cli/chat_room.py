"""The room of a conversation: sandbox, session, model and agent, opened behind the prompt."""

import asyncio
import contextlib
import gc
import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from divingbell.errors import DivingbellError

if TYPE_CHECKING:
    from divingbell.agent.agent import Agent
    from divingbell.agent.events import AgentEvent
    from divingbell.agent.history import Entry
    from divingbell.agent.keeper import Keeper
    from divingbell.agent.keeping import Conversation as KeptConversation
    from divingbell.agent.keeping import Conversations
    from divingbell.agent.mode_choice import ModeChoice
    from divingbell.agent.model import Model
    from divingbell.app import Divingbell
    from divingbell.gateway.context import Asker
    from divingbell.session.base import SessionHandle
    from divingbell.settings.agent import AgentMode
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
    keeper: "Keeper | None" = None
    """Keeps the conversation, where that is wanted."""

    def ask(self, text: str) -> "AsyncGenerator[AgentEvent]":
        """Ask the agent, and keep what is said."""
        return (self.keeper or self.agent).ask(text)

    async def forget(self) -> None:
        """Forget the conversation, also where it is kept."""
        if self.keeper is None:
            self.agent.forget()
        else:
            await self.keeper.forget()

    async def keep(self) -> None:
        """Keep the conversation as it is now."""
        if self.keeper is not None:
            await self.keeper.save()


class Room:
    """Opens in a task of its own, which also closes it; the prompt does not wait for it."""

    def __init__(
        self,
        settings: "Settings",
        make_model: MakeModel,
        furnish: Furnish,
        asker: "Callable[[Divingbell, SessionHandle], Asker | None]",
        on_state: Callable[[str], None],
        on_progress: Callable[[str], None],
        on_resumed: Callable[[str], None],
        *,
        keeps: bool,
        resume: str | None,
    ) -> None:
        """Open nothing yet. With `keeps` the conversation is kept; `resume` names one to go on
        with, and is empty for the last one. `on_progress` hears what takes long, and why."""
        self._settings = settings
        self._keeps = keeps
        self._resume_name = resume
        self._on_resumed = on_resumed
        self._make_model = make_model
        self._furnish = furnish
        self._asker = asker
        self._on_state = on_state
        self._on_progress = on_progress
        self._loop = asyncio.get_running_loop()
        self._place: asyncio.Future[Place] = self._loop.create_future()
        self._entered: Place | None = None
        """The last that was open, until there is another one."""
        self._done_with_session = asyncio.Event()
        self._leaving = False
        self.failure: BaseException | None = None
        """What kept it from opening."""

    @contextlib.asynccontextmanager
    async def opening(
        self, after: Callable[[], Awaitable[None]] | None = None
    ) -> AsyncIterator["Room"]:
        """Open it meanwhile, and close it at the end of the block.

        `after` is waited for first: what is loaded would slow down what the person waits for.
        """
        holding = asyncio.create_task(self._hold(after))
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

    async def change_mode(self, mode: "AgentMode") -> Place:
        """Go on with the conversation in another mode; return what is there now.

        Raises:
            ConfigError: the model can't do what the mode needs.
        """
        before = await self.place()
        agent = await self._agent(
            before.bell, before.session, before.agent.model, before.agent.history, mode
        )
        agent.purse.total = before.agent.purse.total
        agent.tells_mode = False  # whoever changes it is told at once
        kept = None if before.keeper is None else before.keeper.conversation
        place = Place(before.bell, before.session, agent, _keeper(agent, kept, before.bell))
        await place.keep()
        self._place = asyncio.get_running_loop().create_future()
        self._enter(place)
        return place

    def _enter(self, place: Place) -> None:
        self._entered = place
        self._place.set_result(place)

    def on_failure(self, call: Callable[[BaseException], None]) -> None:
        """Call this if it can't be opened."""

        def done(place: "asyncio.Future[Place]") -> None:
            if not place.cancelled() and (error := place.exception()) is not None:
                call(error)

        self._place.add_done_callback(done)

    async def _hold(self, after: Callable[[], Awaitable[None]] | None) -> None:
        making: asyncio.Task[Model] | None = None
        try:
            if after is not None:
                await after()
            # What is loaded makes no garbage: to look for some takes a seventh of all this.
            gc.disable()
            # Beside the event loop, which draws what is typed meanwhile.
            await asyncio.to_thread(_load_sandbox)
            from divingbell.app import Divingbell
            from divingbell.session.needs import Needs
            from divingbell.surfaces.cli.approving import TerminalApprover

            self._on_state("starting the sandbox")
            settings = self._settings
            needs = Needs(settings.preload, tuple(entry.name for entry in settings.servers))
            bell = Divingbell.of(
                settings, progress=self._progress, on_approval=TerminalApprover(), needs=needs
            )
            async with bell.starting():
                # The agent and its model are loaded in a thread, while a session is made.
                making = asyncio.create_task(_made(self._make_model))
                await self._sessions(bell, making)
        except (DivingbellError, OSError, asyncio.CancelledError) as error:
            self.failure = error
            if not self._place.done():
                if isinstance(error, asyncio.CancelledError):
                    self._place.cancel()
                else:
                    self._place.set_exception(error)
                    self._place.exception()  # whoever asks is told; nobody has to ask
        finally:
            gc.enable()
            if making is not None:
                await _closed(making)

    def _progress(self, line: str) -> None:
        """Take a line about how the sandbox starts, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            self._loop.call_soon_threadsafe(self._on_progress, line)

    async def _sessions(self, bell: "Divingbell", making: "asyncio.Task[Model]") -> None:
        """Have one session after the other, should one end; the conversation goes on."""
        kept = await asyncio.to_thread(self._kept) if self._keeps else None
        history: Sequence[Entry] = ()
        model: Model | None = None
        before: Agent | None = None
        mode = None if kept is None else kept.mode
        try:
            is_resumed = kept is not None and bool(kept.written.entries)
            while not self._leaving:
                self._done_with_session.clear()
                name = None if kept is None else kept.name
                async with bell.session(name, idle_timeout=math.inf) as session:
                    told = None
                    if kept is not None and is_resumed:
                        await asyncio.to_thread(_load_agent)
                        told = await self._resume(kept, session, bell)
                        is_resumed = False
                    await self._furnish(session)
                    if model is None:
                        model = await making
                        _settle()
                    if kept is not None and told is not None:
                        history = [*kept.entries(model.name), told]
                    agent = await self._agent(bell, session, model, history, mode)
                    if before is not None:
                        agent.purse.total = before.purse.total
                    self._on_state("")
                    self._enter(Place(bell, session, agent, _keeper(agent, kept, bell)))
                    await self._done_with_session.wait()
                    assert self._entered is not None
                    before = self._entered.agent  # another one than above, if the mode was changed
                    history, model, mode = before.history, before.model, before.mode
        finally:
            if model is not None:
                await model.close()  # the one that was asked last
            if kept is not None:
                kept.close()
                if model is not None and not history:  # else what was to go on is still there
                    await asyncio.to_thread(self._conversations().remove, kept.name)

    def _conversations(self) -> "Conversations":
        from divingbell.agent.keeping import Conversations

        return Conversations.of(self._settings)

    def _kept(self) -> "KeptConversation":
        """Return the conversation in which all is kept: a new one, or one to go on with."""
        found, name = self._conversations(), self._resume_name
        return found.begin() if name is None else found.load(name)

    async def _agent(
        self,
        bell: "Divingbell",
        session: "SessionHandle",
        model: "Model",
        history: "Sequence[Entry]",
        mode: "AgentMode | ModeChoice | None" = None,
    ) -> "Agent":
        from divingbell.agent.opening import open_agent

        asker = self._asker(bell, session)
        return await open_agent(bell, session, model, asker=asker, history=history, mode=mode)

    async def _resume(
        self, kept: "KeptConversation", session: "SessionHandle", bell: "Divingbell"
    ) -> "Entry":
        from divingbell.agent.resuming import resume

        resumed = await resume(kept, session, bell.border)
        self._on_resumed(resumed.text)
        return resumed.entry


def _keeper(agent: "Agent", kept: "KeptConversation | None", bell: "Divingbell") -> "Keeper | None":
    from divingbell.agent.keeper import Keeper

    return None if kept is None else Keeper(agent, kept, bell.border)


async def _made(make_model: MakeModel) -> "Model":
    await asyncio.to_thread(_load_agent)
    return await make_model()


async def _closed(making: "asyncio.Task[Model]") -> None:
    """Close a model that may not be there yet, or never will."""
    making.cancel()
    await asyncio.wait({making})
    if not making.cancelled() and making.exception() is None:
        await making.result().close()


def _load_sandbox() -> None:
    """Load what has to be there before the sandbox can start."""
    import divingbell.app
    import divingbell.surfaces.cli.approving  # noqa: F401


def _load_agent() -> None:
    """Load what can be loaded while the sandbox starts."""
    import divingbell.agent.keeper
    import divingbell.agent.opening
    import divingbell.agent.resuming  # noqa: F401


def _settle() -> None:
    """Once all is loaded: collect garbage again, and never look for it in what stays anyway."""
    gc.freeze()
    gc.enable()
