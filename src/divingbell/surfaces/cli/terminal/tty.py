"""The terminal itself, whatever stdin and stdout are: lines to a person, and lines back."""

import asyncio
import contextlib
import os
import termios
from collections.abc import Callable, Iterator

TERMINAL = "/dev/tty"
MAX_LINE = 4096
STDIN = 0
_LOCAL = 3
"""The place of the local modes in what termios returns."""
_LINES = termios.ECHO | termios.ICANON


class Tty:
    """A terminal that is open, and never blocks the event loop."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def forget_typed(self) -> None:
        """Drop what was typed so far: before a question was there it is no answer to it.

        Raises:
            OSError: the terminal can't be used.
        """
        try:
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
        except termios.error as error:
            raise OSError(*error.args) from None

    async def write(self, text: str) -> None:
        """Write a text.

        Raises:
            OSError: the terminal can't be used.
        """
        left = memoryview(text.encode("utf-8", "backslashreplace"))
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                await _ready(self._descriptor, writing=True)

    async def read_line(self) -> str | None:
        """Return the next line, or None at the end. The terminal hands over whole lines.

        Raises:
            OSError: the terminal can't be used.
        """
        raw = b""
        while not raw.endswith(b"\n") and len(raw) < MAX_LINE:
            await _ready(self._descriptor, writing=False)
            try:
                piece = os.read(self._descriptor, MAX_LINE)
            except BlockingIOError:
                continue
            if not piece:
                return None
            raw += piece
        return raw.decode("utf-8", "replace")


@contextlib.contextmanager
def opened(path: str = TERMINAL) -> Iterator[Tty]:
    """Open the terminal for as long as the block lasts.

    Raises:
        OSError: there is none.
    """
    # Opened anew, so that not to block is nobody else's setting.
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield Tty(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def echo(is_on: bool, descriptor: int = STDIN) -> Iterator[Callable[[], None]]:
    """Have the terminal show what is typed and hand over lines, or neither, during the block.

    In the middle of an answer it would be written over that. The next prompt shows it, and finds
    all keys: where lines are handed over, Ctrl-D would be gone. Yields what puts it in order again,
    for one who has to leave at once.
    """
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error:
        yield lambda: None
        return

    def restore() -> None:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    changed = list(before)
    changed[_LOCAL] = before[_LOCAL] | _LINES if is_on else before[_LOCAL] & ~_LINES
    with contextlib.suppress(termios.error):
        termios.tcsetattr(descriptor, termios.TCSANOW, changed)
    try:
        yield restore
    finally:
        restore()


async def _ready(descriptor: int, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add = loop.add_writer if writing else loop.add_reader
    remove = loop.remove_writer if writing else loop.remove_reader

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, tell)
    try:
        await ready
    finally:
        remove(descriptor)
