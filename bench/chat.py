"""How soon one can type, and how soon code has run: `./dev bench chat`.

Each program is started at a terminal of its own (80 by 24), as a person would. *Prompt* is the time
until it takes input. *First cell* is the time until the output of code stands on the screen that
the model has written for a question which was typed at once; the model is a script behind HTTP, the
same for all, and answers immediately. `llm chat` runs no code.
"""

import asyncio
import contextlib
import fcntl
import itertools
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import apart
import said_server
import table
from environments import environment
from runner import Amount, Benchmark
from turns import Turns, Unable, Way

LOCK = Path(__file__).resolve().parents[1] / "requirements" / "chat-peers.txt"
OURS, GPTME, LLM = "divingbell chat", "gptme", "llm chat"
PROMPT, CELL = "a chat, to its prompt", "a chat, to the output of its first cell"
STARTED = "a command, to its end"
HELP, IMPORT, PYTHON = "divingbell --help", "import divingbell, over bare Python", "python -c pass"
WANTED = {PROMPT: 0.5, CELL: 2.0, HELP: 0.15, IMPORT: 0.03}
"""Seconds."""
PATIENCE = 120.0
CURSOR = b"\x1b[6n"
"""A program asks the terminal where its cursor is, and waits."""


@dataclass(frozen=True)
class Chat:
    """A program to talk to."""

    command: Sequence[str]
    takes_input: bytes
    """What it shows when one can type."""
    variables: Mapping[str, str]
    is_named: bool = False
    """Whether each conversation has to have a name of its own, at the end of the command."""

    def words(self) -> list[str]:
        """Return the command, for one more conversation."""
        return [*self.command, *([f"bench-{next(_numbers)}"] if self.is_named else [])]


_numbers = itertools.count(1)


@contextmanager
def at_a_terminal(chat: Chat) -> Iterator[int]:
    """Start it; yields the terminal's other end. It is ended with the block."""
    words = chat.words()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"TERM": "xterm-256color", **chat.variables}
        os.execvp(words[0], words)
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        yield terminal
    finally:
        os.close(terminal)  # it hangs up, and most end then
        _end(pid)


def _end(pid: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        give_up = time.monotonic() + 5
        while time.monotonic() < give_up:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(0.01)


def shown(terminal: int, words: bytes) -> float:
    """Wait until words are on the screen; return when that was.

    Raises:
        Unable: they did not come.
    """
    seen = b""
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        if not select.select([terminal], [], [], 0.5)[0]:
            continue
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:
            break  # it has ended
        if CURSOR in piece:
            os.write(terminal, b"\x1b[1;1R")
        seen += piece
        if words in seen:
            return time.perf_counter()
    raise Unable(f"it did not show {words!r}: {seen[-200:]!r}")


async def _to_prompt(chat: Chat) -> list[float]:
    return [await asyncio.to_thread(_timed, chat, False)]


async def _to_cell(chat: Chat) -> list[float]:
    return [await asyncio.to_thread(_timed, chat, True)]


def _timed(chat: Chat, runs_code: bool) -> float:
    started = time.perf_counter()
    with at_a_terminal(chat) as terminal:
        reached = shown(terminal, chat.takes_input)
        if runs_code:
            os.write(terminal, b"go\r")
            reached = shown(terminal, said_server.SHOWN)
    return reached - started


@contextmanager
def chats(install: bool) -> Iterator[tuple[dict[str, Chat], dict[str, str]]]:
    """All that can be had here, and why others can't."""
    with ExitStack() as stack:
        address = stack.enter_context(said_server.serving())
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="divingbell-bench-home-"))
        program = str(Path(sys.executable).with_name("divingbell"))
        model = ("--model", "openai-chat:said", "--base-url", address)
        found = {OURS: Chat([program, "chat", *model, "--no-save"], "›".encode(), {})}
        try:
            python = Path(environment(LOCK, install, "./dev bench chat"))
        except Unable as error:
            yield found, {GPTME: str(error), LLM: str(error)}
            return
        theirs = {"HOME": home, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": address}
        theirs |= {name: f"{home}/{name}" for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        options = ["-m", "local/said", "-y", "--tool-format", "markdown", "--tools", "ipython"]
        gptme = [str(python.with_name("gptme")), *options, "--name"]
        found[GPTME] = Chat(gptme, b"User\x1b[0m:", theirs, is_named=True)
        llm = [str(python.with_name("llm")), "chat", "-m", "gpt-4o-mini"]
        found[LLM] = Chat(llm, b"!fragment", theirs)
        yield found, {}


async def beside(measure: str, rounds: int, install: bool) -> list[table.Row]:
    """All chats take turns."""
    once = _to_prompt if measure == PROMPT else _to_cell
    with chats(install) as (found, missing):
        if measure == CELL:
            found.pop(LLM, None)
            missing = {**missing, LLM: "it runs no code"}
        ways: dict[str, Way] = {name: partial(once, chat) for name, chat in found.items()}
        turns = await Turns(ways).take(rounds)
    missing |= turns.missing
    rows = []
    for name in (OURS, GPTME, LLM):
        if name not in turns:
            rows.append(table.Row(measure, name, f"– ({missing[name]})"))
            continue
        ratio = "1" if name == OURS else f"{turns.ratio(name, OURS):.3g}× {OURS}"
        target = _aim(measure, turns.times(name)) if name == OURS else ""
        rows.append(table.times(measure, name, turns.times(name), ratio=ratio, target=target))
    return rows


async def starting(rounds: int) -> list[table.Row]:
    """The command's help, and the library's import less bare Python."""
    program = str(Path(sys.executable).with_name("divingbell"))
    commands = {
        HELP: [program, "--help"],
        IMPORT: [sys.executable, "-c", "import divingbell"],
        PYTHON: [sys.executable, "-c", "pass"],
    }
    turns = await Turns({name: partial(_run, words) for name, words in commands.items()}).take(
        rounds
    )
    bare = median(turns.times(PYTHON))
    imports = [max(taken - bare, 0.0) for taken in turns.times(IMPORT)]
    times = {HELP: turns.times(HELP), IMPORT: imports, PYTHON: turns.times(PYTHON)}
    return [
        table.times(STARTED, name, taken, target=_aim(name, taken)) for name, taken in times.items()
    ]


async def _run(command: Sequence[str]) -> list[float]:
    started = time.perf_counter()
    await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
    return [time.perf_counter() - started]


def _aim(name: str, taken: Sequence[float]) -> str:
    if name not in WANTED:
        return ""
    return table.at_most(median(taken) * 1000, WANTED[name] * 1000, " ms")


BENCHMARK = Benchmark(
    "chat",
    __doc__,
    parts={
        "start": lambda chosen: starting(int(chosen.starts)),
        "prompt": lambda chosen: beside(PROMPT, int(chosen.rounds), not chosen.no_install),
        "cell": lambda chosen: beside(CELL, int(chosen.rounds), not chosen.no_install),
    },
    amounts={
        "starts": Amount("turns of each command", 15, 1),
        "rounds": Amount("turns of each chat", 7, 1),
    },
    within=[apart.home],
    flags={"no_install": "only chats that are installed"},
)

if __name__ == "__main__":
    BENCHMARK.main()
