"""Approvals at the terminal: the person there is asked before a tool is called."""

import asyncio
import os
import termios

from divingbell.escapes import RESET, one_line
from divingbell.gateway.policy.approval_form import question
from divingbell.gateway.policy.approvals import Answer, Approval, NobodyThere, Word

TERMINAL = "/dev/tty"
MAX_LINE = 4096
TRIES = 3
_PROMPT = "[y]es, [n]o, [a]ll like this in this run, all in this [s]ession? "
_WORDS: dict[str, Word] = {
    "y": "yes",
    "yes": "yes",
    "n": "no",
    "no": "no",
    "": "no",
    "a": "always",
    "all": "always",
    "s": "session",
    "session": "session",
}


class TerminalApprover:
    """Puts the question on the terminal itself: stdin and stdout may be files or pipes."""

    def __init__(self, terminal: str = TERMINAL) -> None:
        self._terminal = terminal

    async def __call__(self, approval: Approval) -> Answer:
        """Return the answer; the end of input is a no.

        Raises:
            NobodyThere: there is no terminal.
        """
        try:
            # Opened anew, so that not to block is nobody else's setting.
            flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(self._terminal, flags)
        except OSError:
            raise NobodyThere(
                "there is no terminal: add a rule to [policy] that allows it"
            ) from None
        try:
            return await _converse(descriptor, approval)
        except (OSError, termios.error):
            raise NobodyThere("the terminal can't be used") from None
        finally:
            os.close(descriptor)


async def _converse(descriptor: int, approval: Approval) -> Answer:
    # What was typed before the question was there is no answer to it.
    termios.tcflush(descriptor, termios.TCIFLUSH)
    lines = (one_line(line) for line in question(approval).splitlines())
    await _write(descriptor, f"{RESET}\n" + "".join(f"| {line}\n" for line in lines))
    for _ in range(TRIES):
        await _write(descriptor, _PROMPT)
        line = await _read_line(descriptor)
        if line is None:
            await _write(descriptor, "\n")
            return Answer("no")
        word = _WORDS.get(line.strip().lower())
        if word is not None:
            return Answer(word)
    return Answer("no")


async def _read_line(descriptor: int) -> str | None:
    """The next line, or None at the end. The terminal hands over whole lines."""
    raw = b""
    while not raw.endswith(b"\n") and len(raw) < MAX_LINE:
        await _ready(descriptor, writing=False)
        try:
            piece = os.read(descriptor, MAX_LINE)
        except BlockingIOError:
            continue
        if not piece:
            return None
        raw += piece
    return raw.decode("utf-8", "replace")


async def _write(descriptor: int, text: str) -> None:
    left = memoryview(text.encode("utf-8", "backslashreplace"))
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            await _ready(descriptor, writing=True)


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
