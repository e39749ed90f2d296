"""The prompt of a chat: several lines, history, completion of commands."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.completion import (
    CompleteEvent,
    Completer,
    Completion,
    PathCompleter,
)
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from divingbell.surfaces.cli.terminal.prompt import history_of

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import AnyFormattedText

SIGN = "› "
DRAWING = 2.0
"""Seconds that a prompt may take until it stands there."""
Choices = Callable[[], Iterable[str]]


class CommandCompleter(Completer):
    """Completes commands, and what they take: one of some words, or a path of this machine."""

    def __init__(self, commands: Mapping[str, Choices | None], paths: Iterable[str]) -> None:
        self._commands = commands
        self._with_paths = frozenset(paths)
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        command, space, rest = text.partition(" ")
        if not space:
            yield from _beginning_with(command, self._commands)
        elif command in self._with_paths:
            yield from self._paths.get_completions(Document(rest), event)
        elif (choices := self._commands.get(command)) is not None:
            yield from _beginning_with(rest, choices())


def _beginning_with(start: str, names: Iterable[str]) -> Iterable[Completion]:
    return [Completion(name, -len(start)) for name in names if name.startswith(start)]


class ChatPrompt:
    """Reads what a person has to say."""

    def __init__(
        self,
        history: Path | None,
        completer: Completer,
        state: "Callable[[], AnyFormattedText]",
        *,
        colours: bool,
    ) -> None:
        from prompt_toolkit.output import ColorDepth

        self._showing: set[asyncio.Future[None]] = set()
        self._prompt: PromptSession[str] = PromptSession(
            SIGN,
            multiline=True,
            prompt_continuation="  ",
            history=history_of(history),
            key_bindings=_keys(),
            completer=completer,
            complete_while_typing=False,
            bottom_toolbar=state,
            enable_open_in_editor=False,
            color_depth=None if colours else ColorDepth.DEPTH_1_BIT,
            reserve_space_for_menu=4,
        )
        self._drawn = asyncio.Event()
        self._prompt.app.after_render += lambda _: self._drawn.set()

    async def drawn(self) -> None:
        """Wait until it stands on the screen; not for long, should it never be drawn."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._drawn.wait(), DRAWING)

    async def read(self, draft: str = "") -> str:
        """Return what is said; `draft` is there to begin with.

        Raises:
            EOFError: Ctrl-D at an empty prompt.
            KeyboardInterrupt: Ctrl-C at an empty prompt.
        """
        return await self._prompt.prompt_async(default=draft)

    def refresh(self) -> None:
        """Draw the state again."""
        self._prompt.app.invalidate()

    def show_above(self, show: Callable[[], Awaitable[None]]) -> None:
        """Have something written above the prompt."""
        showing = asyncio.ensure_future(self._show_above(show))
        self._showing.add(showing)
        showing.add_done_callback(self._showing.discard)

    async def _show_above(self, show: Callable[[], Awaitable[None]]) -> None:
        if self._prompt.app.is_running:
            with set_app(self._prompt.app):
                async with in_terminal():
                    await show()
        else:
            await show()

    def give_up(self, error: BaseException) -> None:
        """Have `read` raise this, if somebody waits there."""
        if self._prompt.app.is_running:
            self._prompt.app.exit(exception=error)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    @keys.add("c-j")  # what Enter is where it was typed before the prompt was there
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif buffer.text.strip():
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt())

    return keys
