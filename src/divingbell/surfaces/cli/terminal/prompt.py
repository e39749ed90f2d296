"""The prompt of the shell: code from a person at a terminal, or from a pipe."""

import asyncio
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.host import owned_folder
from divingbell.surfaces.cli.terminal.blocks import Blocks, is_complete

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

STDIN = 0
MAX_READ = 1 << 16
LEAVING = frozenset({"exit", "quit", "exit()", "quit()"})
_DOT_COMMAND = re.compile(r"\.[a-z]+(\s|$)")


def is_dot_command(text: str) -> bool:
    """Whether it is `.files` or the like, which is for the shell; `.5` is a number."""
    return _DOT_COMMAND.match(text) is not None


class Input(ABC):
    """Gives one piece of code, or one dot-command, after the other."""

    @abstractmethod
    async def read(self) -> str:
        """Return the next one.

        Raises:
            EOFError: there is no more.
            KeyboardInterrupt: the line was given up.
        """


class Pipe(Input):
    """Lines from stdin, put together to blocks."""

    def __init__(self) -> None:
        self._ready: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        # Not sys.stdin: a daemon thread that waits in it makes Python abort when it ends.
        threading.Thread(target=self._work, name="divingbell-stdin", daemon=True).start()

    async def read(self) -> str:
        block = await self._ready.get()
        if block is None:
            raise EOFError
        return block

    def _work(self) -> None:
        blocks = Blocks()
        rest = b""
        while data := os.read(STDIN, MAX_READ):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(blocks, line)
        self._take(blocks, rest)
        for block in blocks.finish():
            self._hand_over(block)
        self._hand_over(None)

    def _take(self, blocks: Blocks, raw: bytes) -> None:
        # Bytes that are no text stay visible, and make a SyntaxError that names them.
        line = raw.removesuffix(b"\r").decode("utf-8", "replace")
        if blocks.empty and is_dot_command(line):
            self._hand_over(line)
            return
        for block in blocks.feed(line):
            self._hand_over(block)

    def _hand_over(self, block: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ready.put_nowait, block)


class Terminal(Input):
    """A prompt with history, colours and multi-line input."""

    def __init__(self, history: Path | None, completer: "Completer | None" = None) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]

        self._prompt: PromptSession[str] = PromptSession(
            ">>> ",
            multiline=True,
            prompt_continuation="... ",
            history=history_of(history),
            key_bindings=_keys(),
            completer=completer,
            complete_while_typing=False,
            lexer=PygmentsLexer(PythonLexer),
            enable_open_in_editor=False,
        )

    async def read(self) -> str:
        return await self._prompt.prompt_async()


def history_file(environment: Mapping[str, str] = os.environ, name: str = "history") -> Path | None:
    """Return the file of earlier input, made where it is missing; None where that can't be."""
    above = environment.get("XDG_STATE_HOME", "")
    try:
        folder = Path(above) if os.path.isabs(above) else Path.home() / ".local" / "state"
        path = folder / "divingbell" / name
        owned_folder.make(path.parent, 0o700)
        # What people type is nobody else's business.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    except (OSError, RuntimeError):
        return None
    return path


def history_of(path: Path | None) -> "History":
    """Return the history in a file, or one that nothing stays of."""
    from prompt_toolkit.history import InMemoryHistory

    from divingbell.surfaces.cli.terminal.kept_history import KeptHistory

    return InMemoryHistory() if path is None else KeptHistory(path)


def _keys() -> "KeyBindings":
    from prompt_toolkit.filters import Condition, has_focus
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter", filter=has_focus("DEFAULT_BUFFER"))
    def _(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None  # it was chosen, and there may be more to type
        elif _is_ready(buffer):
            buffer.validate_and_handle()
        else:
            _new_line(buffer)

    # Where there is something to go on from, the key's own meaning is to complete it.
    @keys.add("tab", filter=has_focus("DEFAULT_BUFFER") & Condition(_at_margin))
    def _(event: "KeyPressEvent") -> None:
        event.current_buffer.insert_text("    ")

    return keys


def _at_margin() -> bool:
    """Whether there is nothing before the cursor in its line."""
    from prompt_toolkit.application import get_app

    return not get_app().current_buffer.document.current_line_before_cursor.strip()


def _is_ready(buffer: "Buffer") -> bool:
    document = buffer.document
    if is_dot_command(document.text):
        return True
    # Above the last line of a block, Enter makes room for one more.
    on_last_line = "\n" not in document.text_after_cursor.rstrip()
    return on_last_line and is_complete(document.text)


def _new_line(buffer: "Buffer") -> None:
    before = buffer.document.current_line_before_cursor
    indent = before[: len(before) - len(before.lstrip())]
    buffer.insert_text("\n" + indent + ("    " if before.rstrip().endswith(":") else ""))
