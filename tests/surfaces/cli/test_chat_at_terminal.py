"""`divingbell chat` at a real terminal: what a person sees and types."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from divingbell.surfaces.cli import exit_status
from tests.agent.provider_server import (
    Fault,
    ProviderServer,
    Say,
    hangs,
    raw,
    serving_beside,
    stalls,
    status,
)

from .command import COMMAND, PATIENCE, environment
from .terminals import CTRL_C, CTRL_D, ENTER, TAB, UP, Screen, at_a_terminal

EMAIL = "anna.bell@example.com"
SIGN = "\n›"
SERVERS = Path(__file__).parents[2] / "servers"


@pytest.fixture(scope="module")
def provider() -> Iterator[ProviderServer]:
    with serving_beside() as server:
        yield server


def to(provider: ProviderServer) -> list[str]:
    provider.bodies.clear()
    return ["chat", "--model", "openai-chat:local", "--base-url", f"{provider.url}/v1"]


@contextmanager
def chatting(
    folder: Path, provider: ProviderServer, *more: str, **variables: str
) -> Iterator[Screen]:
    kept = {"XDG_DATA_HOME": str(folder / "kept")} | variables
    with at_a_terminal(folder, *to(provider), *more, **kept) as screen:
        screen.expect("›")
        yield screen


def test_code_output_and_answer_are_shown_and_what_it_cost(
    tmp_path: Path, provider: ProviderServer
) -> None:
    code = "total = 40 + 2\nprint(total)"
    provider.says = [Say("Adding it.", code, thinking="Two *numbers*."), Say("It is **42**.")]
    with chatting(tmp_path, provider) as screen:
        screen.type("what is it?", ENTER)
        screen.expect("Two *numbers*.")
        screen.expect("Adding it.")
        assert "\x1b[2mTwo *numbers*." in screen.raw, "thoughts are told from answers"
        screen.expect("┃ total = 40 + 2\n┃ print(total)\n42\n")
        screen.expect("It is 42.")
        screen.expect("2 requests, 100 tokens read, 24 written")
        screen.type("/vars", ENTER)
        screen.expect("total: int")
        screen.type(CTRL_D)
        assert screen.leave() == exit_status.OK


def test_the_person_sees_real_values_with_marks_and_the_model_tokens(
    tmp_path: Path, provider: ProviderServer
) -> None:
    plot = "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()"
    table = "import pandas\npandas.DataFrame({'who': ['anna.bell' + '@example.com'], 'n': [77]})"
    code = f"print('anna.bell' + '@example.com')\n{plot}\n{table}"
    provider.says = [Say("", code), Say("Done.")]
    with chatting(tmp_path, provider, TERM_PROGRAM="WezTerm") as screen:
        screen.type(f"write to {EMAIL}", ENTER)
        shown = screen.expect("Done.")
        assert f"\n‹{EMAIL}›\n" in shown
        assert re.search(rf"\n0 +‹{EMAIL}› +77\n", shown), "in the cells of tables, too"
        assert "\x1b]1337;File=inline=1" in shown
        assert "plot saved as plot-1.png\n· the model has not seen this plot" in shown
        screen.type("/privacy", ENTER)
        screen.expect("privacy is personal")
        screen.expect(f"]  ‹{EMAIL}›")
    assert EMAIL not in str(provider.bodies)
    assert (tmp_path / "plot-1.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_stops_a_cell_or_the_model_and_twice_at_the_prompt_leaves(
    tmp_path: Path, provider: ProviderServer
) -> None:
    endless = "kept = 1\nimport time\nwhile True:\n    print('tick')\n    time.sleep(0.1)"
    busy = status(429, "{}", **{"retry-after": "50"})
    provider.says = [Say("", endless), hangs(), busy, Say("Here I am.")]
    with chatting(tmp_path, provider) as screen:
        screen.type("run", ENTER)
        screen.expect("tick\ntick")
        screen.type(CTRL_C)
        screen.expect("interrupted; what was shown stays")
        screen.expect(SIGN)
        screen.type("think", ENTER)
        until_asked(provider, 2)
        screen.type(CTRL_C)
        screen.expect("interrupted; what was shown stays")
        screen.expect(SIGN)
        screen.type("hello?", ENTER)
        screen.expect("too many requests; asking again in 50 s")
        screen.type(CTRL_C)
        screen.expect("interrupted; what was shown stays")
        screen.expect(SIGN)
        screen.type("there?", ENTER)
        screen.expect("Here I am.")
        screen.type("/vars", ENTER)
        screen.expect("kept: int")
        screen.expect(SIGN)
        screen.type("half a line", CTRL_C)  # gives the line up
        screen.type(CTRL_C)
        screen.expect("Ctrl-C once more leaves")
        screen.expect("›")
        screen.type(CTRL_C)
        assert screen.leave() == exit_status.OK
    last = provider.bodies[-1].decode()
    assert "tick" in last and "[interrupted by the person]" in last


def until_asked(provider: ProviderServer, times: int) -> None:
    give_up = time.monotonic() + PATIENCE
    while len(provider.bodies) < times:
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_approvals_and_questions_of_servers_are_asked_in_place(
    tmp_path: Path, provider: ProviderServer
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'[servers.asking]\ncommand = "{sys.executable}"\n'
        f'args = ["{SERVERS / "asking.py"}"]\n'
        '[agent]\nmode = "code"\n'
        '[[policy.rules]]\ntools = ["asking.work"]\naction = "ask"\nreason = "it asks"\n'
    )
    code = f"from servers.asking import work\nprint('answer', work(to={EMAIL!r}))"
    provider.says = [Say("", code), Say("So it is.")]
    with chatting(tmp_path, provider, "--config", str(settings)) as screen:
        screen.type("go", ENTER)
        screen.expect("| The code wants to call asking.work.")
        screen.expect("it asks")
        screen.expect(f"‹{EMAIL}›")
        screen.expect("ession? ")
        screen.type("y", ENTER)
        screen.expect("| asking asks: Who are you?")
        screen.expect("name (may be left empty): ")
        screen.type("Nobody", ENTER)
        screen.expect("answer")
        assert "Nobody" in screen.expect("So it is.")


def test_output_waits_while_the_person_is_asked(tmp_path: Path, provider: ProviderServer) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'[servers.workshop]\ncommand = "{sys.executable}"\n'
        f'args = ["{SERVERS / "workshop.py"}"]\n[agent]\nmode = "code"\n'
        '[[policy.rules]]\ntools = ["workshop.echo"]\naction = "ask"\n'
    )
    code = (
        "import threading, time\nfrom servers.workshop import echo\ndone = threading.Event()\n"
        "def tick():\n    while not done.wait(0.001): print('tick', flush=True)\n"
        "thread = threading.Thread(target=tick)\nthread.start()\ntime.sleep(0.2)\n"
        "print(echo('the answer'))\ndone.set()\nthread.join()"
    )
    provider.says = [Say("", code), Say("So it is.")]
    with chatting(tmp_path, provider, "--config", str(settings)) as screen:
        screen.type("go", ENTER)
        screen.expect("tick\ntick")
        screen.expect("ession? ")
        for _ in range(2):
            screen.type("what", ENTER)
            assert "tick" not in screen.expect("ession? ")
        screen.type("y", ENTER)
        screen.expect("tick\ntick")
        assert "the answer" in screen.expect("So it is.")


def test_tools_are_listed_as_far_as_the_person_may_call_them(
    tmp_path: Path, provider: ProviderServer
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'[servers.workshop]\ncommand = "{sys.executable}"\n'
        f'args = ["{SERVERS / "workshop.py"}"]\n'
        '[[policy.rules]]\ntools = ["workshop.fail"]\naction = "deny"\n'
    )
    provider.says = [Say("Hello.")]
    with chatting(tmp_path, provider, "--config", str(settings)) as screen:
        screen.type("hello", ENTER)
        screen.expect("Hello.")
        screen.type("/tools workshop", ENTER)
        shown = screen.expect("workshop.tell")
        assert "workshop.echo" in shown and "workshop.fail" not in shown


def test_what_a_model_says_can_not_act_on_the_terminal(
    tmp_path: Path, provider: ProviderServer
) -> None:
    bad = "\x1b]0;owned\x07\x1b[2J\x9b6n"
    code = f"# {bad}\nprint({bad!r} + 'printed')"
    link = "[harmless](http://example.com/?stolen=1)"
    provider.says = [Say(f"One {bad} two \u202e three {link}.", code), Say("End.")]
    with chatting(tmp_path, provider) as screen:
        begin = len(screen.raw)
        screen.type("go", ENTER)
        screen.expect("three harmless (http://example.com/?stolen=1)")
        screen.expect("printed")
        screen.expect("End.")
        shown = screen.raw[begin:]
    assert "\x1b]0" not in shown and "\x9b" not in shown and "\x1b[2J" not in shown
    assert "\\u202e" in shown and "\x1b]8" not in shown


def test_a_failure_of_the_provider_ends_the_answer_and_not_the_chat(
    tmp_path: Path, provider: ProviderServer
) -> None:
    refused = status(401, '{"error": {"message": "bad key"}}')
    provider.says = [refused, raw(b"data: {broken\n\n"), Say("Now it works.")]
    with chatting(tmp_path, provider) as screen:
        screen.type("first words", ENTER)
        screen.expect("the key was not accepted: check it (bad key)")
        screen.expect(SIGN)
        screen.type("second words", ENTER)
        screen.expect("openai-chat:local: it failed; asking again in 1 s")
        screen.expect("Now it works.")
    assert b"first words" not in provider.bodies[-1]  # nothing of it stays


def test_lines_history_and_completion(tmp_path: Path, provider: ProviderServer) -> None:
    provider.says = [Say("Two lines."), Say("Again.")]
    with chatting(tmp_path, provider) as screen:
        screen.type("one\\", ENTER, "two", ENTER)
        screen.expect("Two lines.")
        screen.expect(SIGN)
        assert b"one\\\\ntwo" in provider.bodies[0].replace(b"\\n", b"\\\\n")
        screen.type("/hel", TAB)
        screen.expect("/help")
        screen.type(ENTER)
        screen.expect("take back the last exchange")
        screen.expect(SIGN)
        screen.type("/nothing", ENTER)
        screen.expect("there is no /nothing")
        screen.expect(SIGN)
        screen.type(CTRL_D)
        assert screen.leave() == exit_status.OK
    kept = tmp_path / "divingbell" / "chat-history"
    assert kept.stat().st_mode & 0o777 == 0o600
    with chatting(tmp_path, provider, "--no-save") as screen:
        screen.type(CTRL_D)
        assert screen.leave() == exit_status.OK
    with chatting(tmp_path, provider) as screen:
        screen.type(UP, UP, UP, ENTER)
        screen.expect("Again.")


def test_an_exchange_is_taken_back_written_down_and_gone_on_with(
    tmp_path: Path, provider: ProviderServer
) -> None:
    provider.says = [Say("", "made = 5"), Say("First."), Say("Second.")]
    with chatting(tmp_path, provider) as screen:
        screen.type("one", ENTER)
        screen.expect("First.")
        screen.expect(SIGN)
        screen.type("two", ENTER)
        screen.expect("Second.")
        screen.expect(SIGN)
        screen.type("/undo", ENTER)
        screen.expect("the last exchange is gone; variables and files stay")
        screen.expect(SIGN)
        screen.type("/export talk.md", ENTER)
        screen.expect("written to talk.md")
        screen.expect(SIGN)
        screen.type("/export talk.md", ENTER)
        screen.expect("talk.md is there already, and is not written over")
        screen.type(CTRL_D)
        assert screen.leave() == exit_status.OK
    written = (tmp_path / "talk.md").read_text()
    assert "First." in written and "Second." not in written
    provider.says = [Say("Third.")]
    with chatting(tmp_path, provider, "--resume") as screen:
        screen.expect("variables do not come back; these are gone:")
        screen.expect("made (int), made by cell 1: made = 5")
        screen.type("three", ENTER)
        screen.expect("Third.")
    last = provider.bodies[-1]
    assert b"First." in last and b"Second." not in last


MAKING = """
def double(x: int) -> int:
    '''Double a number.'''
    return 2 * x
open("made.txt", "w").write("abc")
print(double(4))
"""


def test_commands_tell_and_change_how_the_conversation_goes(
    tmp_path: Path, provider: ProviderServer
) -> None:
    provider.says = [Say("", MAKING), Say("Eight."), Say("From another.")]
    with chatting(tmp_path, provider) as screen:

        def command(text: str, *expected: str) -> None:
            screen.type(text, ENTER)
            for each in expected:
                screen.expect(each)
            screen.expect(SIGN)

        command("/files", "/workspace has no files")
        command("/cost", "openai-chat:local: ", "in this chat")
        command("double four", "8\n", "Eight.")
        command("/files", "made.txt")
        command("/cost", "100 tokens read, 24 written", "the price of this model is not known")
        command("/skills", "there are none yet")
        command("/save", "name a function")
        command("/save import", "name a function")
        command("/save nothing", "not saved: name 'nothing' is not defined")
        command("/save double", "not saved: ", "/save double double(…)")
        command("/save double double(4)", "from skills import double")
        command("/skills", "double  Double a number.")
        command("/mode", "the mode is code: there are no tools to call directly")
        command("/mode sideways", "the modes are auto, code, direct, hybrid")
        command("/model", "openai-chat:local")
        command("/model nobody:x", "names no provider")
        command("/model openai-chat:other", "from now on openai-chat:other is asked")
        command("who are you?", "From another.")
        assert b'"model":"other"' in provider.bodies[-1] and b"Eight." in provider.bodies[-1]
        command("/export talk.ipynb", "written to talk.ipynb")
        command("/export talk.py", "written to talk.py")
        command("/export talk.txt", "")
        command("/reset", "a new conversation")
        command("/vars", "there are no variables yet")
        command("/files", "made.txt")
        provider.says = [Say("Hello.")]
        command("anew", "Hello.")
        assert b"Eight." not in provider.bodies[-1]
    cells = json.loads((tmp_path / "talk.ipynb").read_text())["cells"]
    assert MAKING.strip() in ["".join(each["source"]).strip() for each in cells]
    done = subprocess.run([sys.executable, tmp_path / "talk.py"], cwd=tmp_path, check=True)
    assert done.returncode == 0 and (tmp_path / "made.txt").read_text() == "abc"


SLEEPING = "open('f', 'w').write('1')\nimport time\nprint('begun', flush=True)\ntime.sleep(600)"


@pytest.mark.parametrize(
    ("say", "shown"),
    [(Say("Let me see.", SLEEPING), "begun\n"), (stalls("These are the first words"), "words")],
    ids=["in a cell", "in a reply"],
)
def test_what_was_killed_in_mid_answer_comes_back(
    tmp_path: Path, provider: ProviderServer, say: Say | Fault, shown: str
) -> None:
    provider.says = [Say("Hello."), say]
    with chatting(tmp_path, provider) as screen:
        screen.type("an early question", ENTER)
        screen.expect("Hello.")
        screen.expect(SIGN)
        screen.type("a later question", ENTER)
        screen.expect(shown)
    # It was killed with SIGKILL there.
    provider.says = [Say("I am back.")]
    with chatting(tmp_path, provider, "--resume") as screen:
        screen.expect("goes on in a new session")
        screen.type("go on", ENTER)
        screen.expect("I am back.")
    last = provider.bodies[-1].decode()
    for words in ("an early question", "Hello.", "a later question", "[interrupted: the program"):
        assert words in last
    assert ("begun" in last) == (shown == "begun\n")


TELLING = """
import sys
from pathlib import Path
from divingbell.surfaces.cli.main import main
from divingbell.surfaces.cli.terminal.chat_prompt import ChatPrompt

def told(app):
    if not found:
        found.extend(sys.modules)
        Path("loaded").write_text(" ".join(found))

def made(self, *given, **more):
    make(self, *given, **more)
    self._prompt.app.after_render += told

found, make = [], ChatPrompt.__init__
ChatPrompt.__init__ = made
sys.exit(main())
"""
LATER = {"pydantic_ai", "openai", "mcp", "hyperscan", "cryptography", "pygments"}
"""What takes long to load, and has to wait until one can type."""


def test_the_prompt_is_there_before_anything_is_loaded_that_takes_long(
    tmp_path: Path, provider: ProviderServer
) -> None:
    ours = {
        "divingbell.app",
        "divingbell.agent.agent",
        "divingbell.border.privacy.scanner",
        "divingbell.gateway.gateway",
    }
    told = ["-c", TELLING, *to(provider)]
    with at_a_terminal(tmp_path, *told, program=sys.executable) as screen:
        screen.expect("›")
        provider.says = [Say("Hello.")]
        screen.type("hello", ENTER)
        screen.expect("Hello.")
    loaded = set((tmp_path / "loaded").read_text().split())
    assert "prompt_toolkit" in loaded and not (LATER | ours) & loaded


def test_a_sandbox_that_can_not_start_ends_the_prompt(
    tmp_path: Path, provider: ProviderServer
) -> None:
    missing = str(tmp_path / "file")
    Path(missing).write_text("no folder")
    with at_a_terminal(tmp_path, *to(provider), DIVINGBELL_HOME=missing) as screen:
        screen.expect("divingbell: ")
        assert screen.leave() == exit_status.UNAVAILABLE


# The screen itself

TMUX = shutil.which("tmux")
WORDS = [f"word{number}" for number in range(150)]


@contextmanager
def in_tmux(folder: Path, columns: int, *command: str) -> Iterator[list[str]]:
    """Run a command in a window of tmux; yields the words that reach this tmux."""
    tmux = [str(TMUX), "-S", str(folder / "tmux"), "-f", "/dev/null"]
    size = ["-x", str(columns), "-y", "24"]
    subprocess.run([*tmux, "new-session", "-d", *size, *command], check=True, cwd=folder)
    try:
        yield tmux
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def screen_with(tmux: list[str], text: str) -> str:
    """Wait until a text is on the screen; return all of it, with what has scrolled away."""
    give_up = time.monotonic() + PATIENCE
    while True:
        command = [*tmux, "capture-pane", "-p", "-S", "-500"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if text in shown:
            return shown
        assert time.monotonic() < give_up, shown
        time.sleep(0.05)


def need_tmux() -> None:
    """Skip the test where it is not installed; in CI that is a failure."""
    if TMUX is None:
        if os.environ.get("CI"):
            pytest.fail("tmux is not installed")
        pytest.skip("tmux is not installed")


@pytest.mark.parametrize("variables", [(), ("NO_COLOR=1",), ("TERM=dumb",)])
def test_each_word_stands_on_the_screen_once_however_narrow_it_is(
    tmp_path: Path, provider: ProviderServer, variables: tuple[str, ...]
) -> None:
    need_tmux()
    words = f"{' '.join(WORDS)}\n\n- one\n- two\n\nThe code."
    provider.says = [Say(words, f"text = '{' '.join(WORDS[:12])}'"), Say("The end.")]
    inherited = environment()
    del inherited["COLUMNS"]
    ours = [f"{name}={value}" for name, value in inherited.items()]
    kept = f"XDG_STATE_HOME={tmp_path}"
    command = ["env", "-i", *ours, kept, *variables, str(COMMAND), *to(provider), "--no-save"]
    with in_tmux(tmp_path, 40, *command) as tmux:
        screen_with(tmux, "›")
        subprocess.run([*tmux, "send-keys", "talk", "Enter"], check=True)
        screen_with(tmux, "2 requests")
        shown = screen_with(tmux, "The end.")
    said, code = shown[shown.index("word0") : shown.index("The end.")].split("The code.")
    assert re.findall(r"word\d+", said) == WORDS  # none is cut in two, none is there twice
    first, *rest = [line for line in code.splitlines() if line]
    assert first.startswith("┃ text = 'word0 ") and all(line.startswith("┊ ") for line in rest)
    assert re.findall(r"word\d+", code) == WORDS[:12]
    assert all(len(line) <= 40 for line in shown.splitlines())
