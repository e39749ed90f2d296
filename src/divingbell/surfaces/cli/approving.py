"""Approvals at the terminal: the person there is asked before a tool is called."""

import asyncio

from divingbell.escapes import RESET, one_line
from divingbell.gateway.policy.approval_form import question
from divingbell.gateway.policy.approvals import Answer, Approval, NobodyThere, Word
from divingbell.surfaces.cli.terminal import tty

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
    """Puts the question on the terminal itself: stdin and stdout may be files or pipes.

    A terminal has room for one question; those of other cells wait for their turn.
    """

    def __init__(self, terminal: str = tty.TERMINAL) -> None:
        self._terminal = terminal
        self._turn = asyncio.Lock()

    async def __call__(self, approval: Approval) -> Answer:
        """Return the answer; the end of input is a no.

        Raises:
            NobodyThere: there is no terminal.
        """
        lines = [one_line(line) for line in question(approval).splitlines()]
        async with self._turn:
            return Answer(await ask(lines, self._terminal))


async def ask(lines: list[str], terminal: str = tty.TERMINAL) -> Word:
    """Put lines that are safe to show on the terminal, and return the word that is answered.

    Raises:
        NobodyThere: there is no terminal.
    """
    try:
        with tty.opened(terminal) as person:
            try:
                return await _converse(person, lines)
            except OSError:
                raise NobodyThere("the terminal can't be used") from None
    except OSError:
        raise NobodyThere("there is no terminal: add a rule to [policy] that allows it") from None


async def _converse(person: tty.Tty, lines: list[str]) -> Word:
    person.forget_typed()
    await person.write(f"{RESET}\n" + "".join(f"| {line}\n" for line in lines))
    for _ in range(TRIES):
        await person.write(_PROMPT)
        line = await person.read_line()
        if line is None:
            await person.write("\n")
            return "no"
        word = _WORDS.get(line.strip().lower())
        if word is not None:
            return word
    return "no"
