"""`divingbell chat`: a conversation with a model that works in a session.

The prompt comes first. Sandbox, model and servers are loaded behind it.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from divingbell.agent.choosing import ModelChoice, choose
from divingbell.agent.events import AgentEvent, Notice
from divingbell.agent.model import ModelFailed
from divingbell.border.vault import tokens
from divingbell.errors import DivingbellError, InvalidInput, SessionClosed
from divingbell.surfaces.cli import chat_files, exit_status
from divingbell.surfaces.cli.chat_commands import Commands
from divingbell.surfaces.cli.chat_once import Collected
from divingbell.surfaces.cli.chat_options import ChatOptions, Paths
from divingbell.surfaces.cli.chat_room import LEAVING_PATIENCE, Place, Room
from divingbell.surfaces.cli.terminal import tty
from divingbell.surfaces.cli.terminal.answers import AnswerScreen
from divingbell.surfaces.cli.terminal.look import Look
from divingbell.surfaces.cli.terminal.printing import Printer
from divingbell.surfaces.cli.terminal.prompt import STDIN, history_file
from divingbell.surfaces.cli.terminal.revealing import Revealer
from divingbell.surfaces.cli.terminal.signals import Signals
from divingbell.surfaces.cli.terminal.writer import STDOUT, Writer
from divingbell.text import one_line

if TYPE_CHECKING:
    from divingbell.agent.model import Model
    from divingbell.app import Divingbell
    from divingbell.gateway.context import Asker
    from divingbell.session.base import SessionHandle
    from divingbell.settings.agent import AgentSettings
    from divingbell.settings.config import Settings
    from divingbell.surfaces.cli.terminal.chat_prompt import ChatPrompt

T = TypeVar("T")
NO_TERMINAL = (
    'there is no terminal to talk at: ask one question with --print "…" (what is piped in is a '
    "file for it), or see --demo"
)
INTERRUPTED = "interrupted; what was shown stays in the conversation, and variables stay"
NEW_SESSION = "this is a new one: variables and files that code has made are gone"
HISTORY = "chat-history"
HINT = "/help for help, Ctrl-D to leave"


async def chat(paths: Paths, options: ChatOptions, settings: "Settings", signals: Signals) -> int:
    """Hold a conversation, or answer one question, as the options say; return the exit status."""
    writer = Writer(lambda: signals.leave(exit_status.BROKEN_PIPE))
    try:
        conversation = Conversation(paths, options, settings, signals, writer)
        # Where something else reads what is shown, such as `less`, the keys are its own.
        with tty.echo(False, STDIN) if os.isatty(STDOUT) else contextlib.nullcontext() as restore:
            signals.on_exit = restore
            return await _hold(conversation, options)
    finally:
        if writer.failure is not None:
            raise writer.failure from None


async def _hold(conversation: "Conversation", options: ChatOptions) -> int:
    if options.demo:
        return await conversation.play()
    if options.resume is not None:
        from divingbell.agent.keeping import Conversations

        Conversations.of(conversation.settings).find(options.resume)  # or say so before the prompt
    if options.question is not None:
        return await conversation.answer(options.question)
    if not (os.isatty(STDIN) and os.isatty(STDOUT)):
        raise InvalidInput(NO_TERMINAL)
    return await conversation.converse()


class Conversation:
    """A person, a model, and the room in which it works."""

    def __init__(
        self,
        paths: Paths,
        options: ChatOptions,
        settings: "Settings",
        signals: Signals,
        writer: Writer,
    ) -> None:
        """Choose the model; nothing is started yet.

        Raises:
            ConfigError: there is none to be had.
        """
        self._paths = paths
        self._options = options
        self._settings = settings
        self._signals = signals
        self._writer = writer
        self._look = Look.of()
        self.model = ModelChoice("demo") if options.demo else choose(settings.agent)
        self.printer = Printer(writer, options.plots)
        shows_values = self._look.is_terminal or options.reveal
        self.revealer = Revealer(self._reveal if shows_values else None, self._look.colours)
        self.screen = AnswerScreen(writer, self.printer, self._look, self.revealer, self._fetch)
        self.room = Room(
            settings,
            self._make_model,
            self._furnish,
            self._asker,
            self._tell_state,
            self._tell_progress,
            self._tell_resumed,
            keeps=options.keeps,
            resume=options.resume,
        )
        self.commands = Commands(self)
        self._prompt: ChatPrompt | None = None
        self._state = "starting"
        self._is_waited_for = False
        self.laid_out: list[str] = []
        """What of the person's is where."""
        self.has_told = False
        """Whether the model knows."""
        self._answering: asyncio.Task[None] | None = None

    @property
    def settings(self) -> "Settings":
        return self._settings

    # The parts of the room

    async def _make_model(self) -> "Model":
        if self._options.demo:
            from divingbell.surfaces.cli import chat_demo

            return chat_demo.model(paced=self._look.live)
        return await self.connect(self.model, self._settings.agent)

    async def connect(self, choice: ModelChoice, settings: "AgentSettings") -> "Model":
        """Return a model; what speaks with providers takes a second or two to load.

        Raises:
            ConfigError: there is no such provider, or its key is missing.
        """
        from divingbell.agent.opening import connect_model

        return await asyncio.to_thread(connect_model, choice, settings)

    async def _furnish(self, session: "SessionHandle") -> None:
        servers = chat_files.served(self._settings)
        self.laid_out = await chat_files.lay_out(session, self._paths, servers)
        for path in self._options.put:
            self.laid_out += await chat_files.lay_out(session, Paths((path,)))
        if self._options.question is not None and not os.isatty(STDIN):
            self.laid_out += await chat_files.put_piped(session)
        if self._options.demo:
            from divingbell.surfaces.cli import chat_demo

            await session.files.put(chat_demo.FILE, chat_demo.ORDERS)

    def _asker(self, bell: "Divingbell", session: "SessionHandle") -> "Asker":
        from divingbell.surfaces.cli.terminal.asking import PersonAtTerminal

        async def hide(text: str) -> str:
            return await bell.border.outward(text, session.principal)

        return PersonAtTerminal(self.screen, hide)

    async def _reveal(self, token: str) -> str:
        return await (await self.room.place()).session.reveal(token)

    async def _fetch(self, path: str) -> bytes:
        return await (await self.room.place()).session.files.get(path)

    def _tell_resumed(self, text: str) -> None:
        if self._prompt is not None:
            self._prompt.show_above(lambda: self._show_resumed(text))
        else:
            self._tell_lines(text)

    async def _show_resumed(self, text: str) -> None:
        self._tell_lines(text)
        await self._writer.drain()

    def _tell_lines(self, text: str) -> None:
        for line in text.split("\n"):
            self.printer.note(one_line(line, 400))

    def _tell_state(self, state: str) -> None:
        self._state = one_line(state, 200)
        if self._prompt is not None:
            self._prompt.refresh()

    def _tell_progress(self, line: str) -> None:
        """Tell of what takes long; at the prompt it stands below, and holds nobody up."""
        self._tell_state(line)
        if self._is_waited_for:
            self.printer.note(f"{self._state} …")

    # Talking

    async def converse(self) -> int:
        """Read and answer until the person leaves; return the exit status."""
        from divingbell.surfaces.cli.terminal.chat_prompt import ChatPrompt

        history = None if self._options.no_save else history_file(name=HISTORY)
        self.printer.note(f"{self._who()} · {HINT}")
        await self._writer.drain()
        prompt = self._prompt = ChatPrompt(
            history, self.commands.completer(), self._toolbar, colours=self._look.colours
        )
        async with self.room.opening(after=prompt.drawn):
            self.room.on_failure(prompt.give_up)
            tries_to_leave = 0
            while tries_to_leave < 2:
                await self._writer.drain()
                try:
                    text = await prompt.read()
                except KeyboardInterrupt:
                    tries_to_leave += 1
                    if tries_to_leave < 2:
                        self.printer.note("Ctrl-C once more leaves, as Ctrl-D does")
                    continue
                except EOFError:
                    break
                finally:
                    self._signals.listen()  # the prompt had Ctrl-C for itself
                tries_to_leave = 0
                if not await self._take(text.strip()):
                    break
        return exit_status.OK

    async def _take(self, text: str) -> bool:
        """Do a command, or have it answered; return whether to go on."""
        if self.commands.is_one(text):
            return await self._interruptible(self.commands.run(text)) is not False
        await self.ask(text)
        return True

    async def ask(self, text: str) -> None:
        """Have a question answered on the screen; Ctrl-C ends the answer, and not the chat."""
        self.screen.gap()
        try:
            await self._interruptible(self._show_answer(text))
        except SessionClosed as error:
            self.screen.end()
            self.printer.note(f"{error}; {NEW_SESSION}")
            self.room.renew_session()
        except ModelFailed as error:
            self.screen.end()
            self.printer.note(str(error))
        except DivingbellError as error:
            if not self.room.is_open:
                raise
            self.screen.end()
            self.printer.note(str(error))

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do something that Ctrl-C ends; return None if it did."""
        task = asyncio.create_task(work)
        # Once: whoever is impatient and presses it twice still wants their variables.
        self._signals.on_interrupt = lambda: _cancel_once(task)
        try:
            await asyncio.wait({task})
        finally:
            self._signals.on_interrupt = None
            if not task.done():  # the chat itself is ended
                task.cancel()
                await asyncio.wait({task}, timeout=LEAVING_PATIENCE)
        if task.cancelled():
            self.screen.end()
            self.printer.note(INTERRUPTED)
            return None
        return task.result()

    async def _show_answer(self, text: str) -> None:
        place = await self._opened()
        async with contextlib.aclosing(self._asked(place, text)) as events:
            async for event in events:
                await self.screen.show(event)

    async def _asked(self, place: Place, text: str) -> AsyncGenerator[AgentEvent]:
        """Ask; the first time it is said which files there are."""
        told = "" if self.has_told else chat_files.told(self.laid_out)
        async with contextlib.aclosing(place.ask(text + told)) as events:
            async for event in events:
                self.has_told = True
                yield event

    async def _opened(self) -> Place:
        if not self.room.is_open:
            self.printer.note(f"{self._state or 'starting'} …")
        return await self._awaited()

    async def _awaited(self) -> Place:
        """Wait until the room is open; it is told meanwhile why that takes long."""
        self._is_waited_for = True
        try:
            return await self.room.place()
        finally:
            self._is_waited_for = False

    # Once

    async def answer(self, question: str) -> int:
        """Answer one question; return the exit status."""
        as_text = self._look.is_terminal and not self._options.json
        collected = Collected(self.model.name)
        async with self.room.opening():
            place = await self._awaited()
            try:
                async with contextlib.aclosing(self._asked(place, question)) as events:
                    async for event in events:
                        collected.take(event)
                        if as_text:
                            await self.screen.show(event)
                        elif isinstance(event, Notice) and not self._options.json:
                            self.printer.note(event.text)  # now: it may be why nothing comes
            except ModelFailed as error:
                collected.failure = error
                self.screen.end()
                self.printer.note(str(error))
            if not as_text:
                await self._print(collected)
            await self._writer.drain()
        return collected.status

    async def _print(self, collected: Collected) -> None:
        """Print an answer for a program."""
        session = (await self.room.place()).session
        values: dict[str, str] = {}
        if self._options.reveal:
            said = tokens.in_text(collected.to_json())
            values = {token: await session.reveal(token) for token in said}
        for text in collected.printed(values, as_json=self._options.json):
            self._writer.write(STDOUT, text + "\n")
        if not self._options.json:
            for note in collected.notes:
                self.printer.note(note)

    # The demonstration

    async def play(self) -> int:
        """Play the recorded conversation; return the exit status."""
        from divingbell.surfaces.cli import chat_demo

        self.printer.note(chat_demo.GREETING)
        async with self.room.opening():
            await self._opened()
            for question in chat_demo.QUESTIONS:
                self.printer.words(f"\n› {question}")
                await self.ask(question)
            self.printer.note(chat_demo.FAREWELL)
            await self._writer.drain()
        return exit_status.OK

    # The state

    def _who(self) -> str:
        why = f" ({self.model.why})" if self.model.why else ""
        return f"{one_line(self.model.name, 80)}{why}"

    def _toolbar(self) -> str:
        if self._state:
            return f" {self._state} …"
        return f" {one_line(self.model.name, 80)} · privacy {self._settings.privacy}"


def _cancel_once(task: "asyncio.Task[Any]") -> None:
    if not task.cancelling():
        task.cancel()
