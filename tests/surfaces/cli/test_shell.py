"""The shell, and whatever else behaves differently at a terminal: a real one (a pty) is used."""

import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from divingbell import Divingbell
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.options import SandboxOptions
from divingbell.surfaces.cli.shell import Shell
from divingbell.surfaces.cli.terminal.blocks import Blocks, is_complete
from divingbell.surfaces.cli.terminal.printing import Printer
from divingbell.surfaces.cli.terminal.prompt import history_file
from divingbell.surfaces.cli.terminal.signals import Signals
from divingbell.surfaces.cli.terminal.writer import STDERR, STDOUT, Writer

from .command import COMMAND, PATIENCE, PNG, environment
from .terminals import CTRL_C, CTRL_D, ENTER, PROMPT, TAB, UP, Screen, at_a_terminal


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    """A shell that waits for input."""
    with at_a_terminal(tmp_path, "shell", "--timeout", "600") as screen:
        screen.expect(PROMPT)
        yield screen


# By hand


def test_it_says_what_is_in_force(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "shell", "--timeout", "7", "--memory", "300MB") as screen:
        shown = screen.expect(PROMPT)
    assert "backend local, limits by " in shown
    assert "timeout 7 s, memory 300MB" in shown


def test_variables_stay_and_values_are_shown(screen: Screen) -> None:
    screen.run("x = 41")
    assert screen.run("x + 1").endswith("\n42")


def test_a_person_is_shown_what_there_is(screen: Screen) -> None:
    """Unless --private is given: what the prompt keeps for the next time is another matter."""
    shown = screen.run(
        "print('ann@' + 'example.org', 'ghp_' + '1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz')"
    )
    assert "ann@example.org ghp_1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz" in shown.replace("\n", "")


def test_a_block_is_typed_line_by_line(screen: Screen) -> None:
    screen.type("for i in range(3):", ENTER)
    screen.type("print('line', i)", ENTER)
    screen.type(ENTER)
    assert "line 0\nline 1\nline 2" in screen.expect("\n" + PROMPT)


def test_a_block_that_is_pasted_is_run_as_one(screen: Screen) -> None:
    screen.type("\x1b[200~a = 20\nb = 22\nprint('sum', a + b)\x1b[201~", ENTER)
    screen.expect("sum 42")


def test_ctrl_c_interrupts_the_cell_and_keeps_the_state(screen: Screen) -> None:
    screen.run("kept = 'still' + ' here'")
    screen.type("import time; print('run' + 'ning'); time.sleep(600)", ENTER)
    screen.expect("running\n")
    screen.type(CTRL_C)
    assert "Cancelled" in screen.expect("\n" + PROMPT)
    assert screen.run("kept").endswith("'still here'")


def test_an_impatient_ctrl_c_does_not_cost_the_shell(screen: Screen) -> None:
    screen.run("kept = 'still' + ' here'")
    screen.type("import time; print('run' + 'ning'); time.sleep(600)", ENTER)
    screen.expect("running\n")
    screen.type(CTRL_C, CTRL_C, CTRL_C)
    screen.expect("\n" + PROMPT)
    screen.type("kept", ENTER)
    screen.expect("'still here'")


def test_ctrl_c_at_the_prompt_gives_up_the_line(screen: Screen) -> None:
    screen.type("this is no", CTRL_C)
    screen.expect("\n" + PROMPT)
    assert screen.run("6 * 7").endswith("\n42")


def complete(screen: Screen, typed: str, added: str, rest: str) -> str:
    """Type something, press Tab, see what is added, type the rest; return what is shown."""
    screen.type(typed, TAB)
    screen.expect(typed)
    screen.expect(added)
    return screen.run(rest)


def test_tab_completes_names_attributes_and_files(screen: Screen, tmp_path: Path) -> None:
    screen.run("import math; distance = 3")
    assert "\n6" in complete(screen, "distan", "ce", " * 2")
    assert "\n2" in complete(screen, "math.flo", "or", "(2.5)")
    (tmp_path / "sales-of-may.csv").write_text("12345")
    shown = complete(screen, ".put sales", "-of-may.csv", "")
    assert "/workspace/sales-of-may.csv has 5B" in shown
    assert "'12345'" in complete(screen, "open('sales", "-of-may.csv", "').read()")
    assert "sales-of-may.csv" in complete(screen, ".fi", "les", "")


def test_tab_indents_where_there_is_nothing_to_complete(screen: Screen) -> None:
    screen.type("if True:", ENTER, TAB, "print(1 + 1)", ENTER, ENTER)
    screen.expect("\n2")


def test_a_name_that_means_harm_is_not_offered(screen: Screen) -> None:
    screen.run("import os; os.mkdir('evil-\\x1b]0;title\\x07'); os.mkdir('evident')")
    assert "\n['evident/'" in complete(screen, "['evi", "dent/", "']")
    assert "]0;title" not in screen.raw.split("['evi")[-1]


@pytest.mark.parametrize("word", ["exit", "quit", "exit()", "quit()"])
def test_the_words_of_python_leave_too(tmp_path: Path, word: str) -> None:
    done = subprocess.run(
        [COMMAND, "shell"],
        input=f"print(1)\n{word}\nprint(2)\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("1\n", exit_status.OK)


def test_ctrl_d_leaves(screen: Screen) -> None:
    screen.type(CTRL_D)
    assert screen.leave() == exit_status.OK


def test_a_failure_shows_its_traceback_and_the_shell_goes_on(screen: Screen) -> None:
    assert "ZeroDivisionError" in screen.run("1 / 0")
    assert screen.run("6 * 7").endswith("\n42")


def test_shell_commands_and_await_work(screen: Screen) -> None:
    assert screen.run("!echo $((6 * 7))").endswith("\n42")
    assert screen.run("import asyncio; await asyncio.sleep(0, 6 * 7)").endswith("\n42")


def test_dot_commands(screen: Screen, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("brought")
    assert ".reset" in screen.run(".help")
    assert "/workspace/in.txt has 7B" in screen.run(".put in.txt")
    assert "7B  in.txt" in screen.run(".files")
    screen.run("text = open('in.txt').read().upper(); size = open('out.txt', 'w').write(text)")
    assert "copied out.txt" in screen.run(".get out.txt")
    assert (tmp_path / "out.txt").read_text() == "BROUGHT"
    assert "text  str  'BROUGHT'" in screen.run(".vars")
    screen.run(".reset")
    assert "NameError" in screen.run("text")
    assert "in.txt" in screen.run(".files")
    assert "no .nonsense" in screen.run(".nonsense")
    assert "no such file" in screen.run(".get nothing")
    assert "name a file" in screen.run(".put")
    assert screen.run(".5 + 1").endswith("\n1.5")
    screen.type(".quit", ENTER)
    assert screen.leave() == exit_status.OK


def test_history_is_kept_for_the_next_time_and_for_nobody_else(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "shell") as screen:
        screen.expect(PROMPT)
        screen.run("print('first' + ' time')")
        screen.type(CTRL_D)
        screen.leave()
    path = tmp_path / "divingbell" / "history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with at_a_terminal(tmp_path, "shell") as screen:
        screen.expect(PROMPT)
        screen.type(UP)
        screen.expect("print('first' + ' time')")
        screen.type(ENTER)
        screen.expect("first time\n")


def test_history_does_without_a_place_for_it() -> None:
    assert history_file({"XDG_STATE_HOME": "/dev/null/nowhere"}) is None


# At a terminal


def test_a_terminal_gets_colours_and_nothing_else(tmp_path: Path) -> None:
    code = r"print('\x1b]0;pwn' + 'ed\x07\x1b[31mred\x1b[2J\x9b6n\x1b[>4m still red')"
    with at_a_terminal(tmp_path, "exec", code) as screen:
        assert screen.leave() == exit_status.OK
    assert screen.raw == "\x1b[31mred still red\r\n\x1b[0m"


def test_hostile_errors_and_names_are_harmless_too(tmp_path: Path) -> None:
    code = r"raise type('\x1b]0;pwn' + 'ed\x07E', (Exception,), {})('\x1b[6n')"
    with at_a_terminal(tmp_path, "exec", code) as screen:
        assert screen.leave() == exit_status.FAILED
    assert "\x1b" not in screen.raw and "\x07" not in screen.raw


def test_progress_bars_reach_a_terminal_as_they_are(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "exec", r"print('10%\r20%\b!', end='')") as screen:
        screen.leave()
    assert screen.raw == "10%\r20%\b!\r\n"


def test_a_plot_is_shown_where_the_terminal_can(tmp_path: Path) -> None:
    code = f"from IPython.display import Image\nImage(data={PNG!r}, format='png')"
    with at_a_terminal(tmp_path, "exec", code, TERM_PROGRAM="WezTerm") as screen:
        screen.leave()
    assert "\x1b]1337;File=inline=1" in screen.raw
    assert "plot saved as plot-1.png" in screen.raw


# From a pipe


def piped(folder: Path, text: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [COMMAND, "shell"],
        input=text,
        capture_output=True,
        cwd=folder,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )


def test_lines_from_a_pipe_are_run_one_after_the_other(tmp_path: Path) -> None:
    done = piped(
        tmp_path,
        b"x = 1\nfor i in range(2):\n    x += i\nprint('x is', x)\n1/0\n.vars\n.quit\nprint('no')",
    )
    assert done.stdout == b"x is 2\nx  int  2\ni  int  1\n"
    assert b"ZeroDivisionError" in done.stderr
    assert done.returncode == exit_status.OK


def test_a_pipe_may_end_within_a_block_and_hold_anything(tmp_path: Path) -> None:
    done = piped(tmp_path, b"print('caf\xe9 \xff')\r\nif True:\r\n    print('end')")
    assert done.stdout.decode() == "caf\ufffd \ufffd\nend\n"
    assert done.returncode == exit_status.OK


def test_the_answer_comes_before_the_next_line_is_sent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "shell"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment(),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for number in range(3):
            process.stdin.write(f"{number} + 1\n".encode())
            process.stdin.flush()
            assert process.stdout.readline() == f"{number + 1}\n".encode()
        process.stdin.close()
        assert process.wait(PATIENCE) == exit_status.OK


# Parts


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 + 1",
        "# a comment",
        "a = 1\nb = 2",
        "for i in x:\n    print(i)\n",
        "for i in x:\n    print(i)\n    ",
        "if x: pass\n",
        "await x()",
        "async for x in y:\n    pass\n",
        "!ls",
        "%time f()",
        "files = !ls",
        "pd.DataFrame?",
        "for i in x:\n    !echo {i}\n",
        "%%bash\necho 1\n",
        "1 /",
        "return 5",
        "a\0b",
        "(" * 500,
    ],
)
def test_this_is_complete(source: str) -> None:
    assert is_complete(source)


@pytest.mark.parametrize(
    "source",
    [
        "x = (1,",
        "x = [\n1,\n\n",
        "'''text",
        "x = 1 \\",
        "!ls \\",
        "@decorated",
        "if x: pass",
        "for i in x:",
        "for i in x:\n    print(i)",
        "for i in x:\n    !echo {i}",
        "if x:\n    files = !ls",
        "x = (a\n % b",
        "%%bash",
        "%%bash\necho 1",
        "async with a as b:",
    ],
)
def test_this_is_not_complete(source: str) -> None:
    assert not is_complete(source)


def test_blocks_end_where_the_next_statement_starts() -> None:
    text = (
        "x = 1\nif x:\n  a\nelse:\n  b\nprint()\nz = (\n1,\n2)\n%%bash\necho a\necho b\n\n"
        "try:\n  a\nexcept E:\n  b\n@d\ndef f(): pass\nlast"
    )
    blocks = Blocks()
    found = [block for line in text.split("\n") for block in blocks.feed(line)]
    assert found + blocks.finish() == [
        "x = 1",
        "if x:\n  a\nelse:\n  b",
        "print()",
        "z = (\n1,\n2)",
        "%%bash\necho a\necho b\n",
        "try:\n  a\nexcept E:\n  b",
        "@d\ndef f(): pass",
        "last",
    ]


class Recorder:
    """Stands where the writer stands, to see what would be written."""

    def __init__(self) -> None:
        self.text = {STDOUT: "", STDERR: ""}

    def write(self, descriptor: int, text: str) -> None:
        self.text[descriptor] += text


async def test_a_session_that_has_ended_is_replaced(bell: Divingbell, tmp_path: Path) -> None:
    recorder = Recorder()
    printer = Printer(cast(Writer, recorder), tmp_path)
    async with Shell(bell, SandboxOptions(), printer, Signals()) as shell:
        await shell.take("x = 1")
        await shell.session.close("it was idle for too long")
        assert await shell.take("x")
        assert "it was idle for too long; this is a new one" in recorder.text[STDERR]
        await shell.take("6 * 7")
        assert "42\n" in recorder.text[STDOUT]
