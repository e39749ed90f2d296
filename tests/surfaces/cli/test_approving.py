"""The question on the terminal, with a real terminal."""

import asyncio
import os
import pty
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from divingbell.gateway.policy.approvals import Answer, Approval, NobodyThere
from divingbell.surfaces.cli.approving import TerminalApprover

PATIENCE = 30.0
ASKED = Approval("github.star", 'repo: "x"', "writes to GitHub")


class Screen:
    """The person's side of a terminal."""

    def __init__(self) -> None:
        self.side, self.theirs = pty.openpty()
        self.name = os.ttyname(self.theirs)
        os.set_blocking(self.side, False)
        self.seen = ""

    async def wait_for(self, text: str) -> None:
        """Read until the text is there, once more than before."""
        loop = asyncio.get_running_loop()
        wanted = self.seen.count(text) + 1
        while self.seen.count(text) < wanted:
            ready = asyncio.Event()
            loop.add_reader(self.side, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_reader(self.side)
            self.seen += os.read(self.side, 65536).decode()

    def type(self, text: str) -> None:
        os.write(self.side, text.encode())

    def close(self) -> None:
        os.close(self.side)
        os.close(self.theirs)


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen()
    yield screen
    screen.close()


async def answered(screen: Screen, *lines: str, asked: Approval = ASKED) -> Answer:
    async with asyncio.timeout(PATIENCE):
        asking = asyncio.create_task(TerminalApprover(screen.name)(asked))
        for line in lines:
            await screen.wait_for("ession? ")
            screen.type(line)
        return await asking


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("y\n", "yes"),
        ("YES\n", "yes"),
        ("n\n", "no"),
        ("\n", "no"),
        ("a\n", "always"),
        ("s\n", "session"),
        ("\x04", "no"),
    ],
)
async def test_one_letter_is_enough(screen: Screen, typed: str, word: str) -> None:
    assert (await answered(screen, typed)).word == word
    assert "The code wants to call github.star." in screen.seen
    assert 'repo: "x"' in screen.seen and "writes to GitHub" in screen.seen


async def test_nonsense_is_asked_again_and_then_a_no(screen: Screen) -> None:
    assert (await answered(screen, "what\n", "y\n")).word == "yes"
    assert (await answered(screen, "what\n", "é\n", "yy\n")).word == "no"


async def test_what_was_typed_before_the_question_is_no_answer(screen: Screen) -> None:
    screen.type("y\n")
    assert (await answered(screen, "n\n")).word == "no"


async def test_hostile_arguments_do_not_control_the_terminal(screen: Screen) -> None:
    hostile = Approval("a.\x1b]0;x\x07b", "path: \x1b[2J\x9b1A\rok", "r\x1b[1A")
    await answered(screen, "n\n", asked=hostile)
    shown = screen.seen.replace("\r\n", "\n").removeprefix("\x1b[0m")
    assert not any(sign in shown for sign in "\x1b\x9b\x07\r")


async def test_a_question_that_is_given_up_takes_no_later_input(screen: Screen) -> None:
    async with asyncio.timeout(PATIENCE):
        asking = asyncio.create_task(TerminalApprover(screen.name)(ASKED))
        await screen.wait_for("ession? ")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    tty.setraw(screen.theirs)
    screen.type("next")
    assert os.read(screen.theirs, 100) == b"next"


async def test_questions_of_several_cells_are_shown_one_at_a_time(screen: Screen) -> None:
    approver = TerminalApprover(screen.name)
    async with asyncio.timeout(PATIENCE):
        first = asyncio.create_task(approver(ASKED))
        second = asyncio.create_task(approver(ASKED))
        await screen.wait_for("ession? ")
        screen.type("y\n")
        assert (await first).word == "yes" and not second.done()
        await screen.wait_for("ession? ")
        screen.type("n\n")
        assert (await second).word == "no"


async def test_without_a_terminal_nobody_is_there() -> None:
    with pytest.raises(NobodyThere, match=r"there is no terminal: add a rule to \[policy\]"):
        await TerminalApprover("/nowhere/tty")(ASKED)


async def test_a_file_is_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("y\n")
    with pytest.raises(NobodyThere, match="the terminal can't be used"):
        await TerminalApprover(str(tmp_path / "file"))(ASKED)
