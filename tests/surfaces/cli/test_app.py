"""The command, run as users run it: another process, its output, its exit status."""

import base64
import contextlib
import importlib
import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cyclopts import App
from cyclopts.command_spec import CommandSpec

from divingbell.surfaces.cli import exit_status, main
from divingbell.surfaces.cli.app import app
from divingbell.surfaces.cli.command_table import COMMANDS

from .command import COMMAND, PATIENCE, PNG, Bell, environment, runner


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    return runner(tmp_path)


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command, running; it is ended if the test has not done so."""
    process = subprocess.Popen(
        [COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(),
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def family(root: int) -> set[int]:
    """The processes below this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
            except (OSError, ValueError):
                continue
    found, new = set[int](), {root}
    while new:
        found |= new
        new = {pid for pid, parent in parents.items() if parent in found} - found
    return found - {root}


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.02)


# Output


def test_output_goes_where_it_belongs_and_the_value_is_printed(bell: Bell) -> None:
    done = bell("exec", "import sys\nprint('one')\nprint('two', file=sys.stderr)\n6 * 7")
    assert (done.stdout, done.stderr, done.returncode) == ("one\n42\n", "two\n", exit_status.OK)


def test_a_value_starts_on_a_line_of_its_own(bell: Bell) -> None:
    done = bell("exec", "print('open', end='')\n5")
    assert (done.stdout, done.stderr) == ("open\n5\n", "")


def test_a_file_is_run(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("\ufeffprint('from a file: é')", encoding="utf-8")
    assert bell("run", "code.py").stdout == "from a file: é\n"


def test_stdin_is_run(bell: Bell) -> None:
    assert bell("run", "-", stdin="print('from stdin')").stdout == "from stdin\n"


def test_code_may_start_with_a_hyphen(bell: Bell) -> None:
    assert bell("exec", "--", "-x if (x := 3) else 0").stdout == "-3\n"


def test_output_comes_while_the_code_runs(tmp_path: Path) -> None:
    code = "import time\nprint('now', flush=True)\ntime.sleep(600)"
    with started(tmp_path, "exec", "--timeout", "600", code) as process:
        assert first_line(process) == "now\n"
        assert process.poll() is None


def test_stdout_and_stderr_keep_their_order(tmp_path: Path) -> None:
    code = (
        "import sys, os\nfor i in range(50):\n"
        "    print(i)\n    print(i, file=sys.stderr)\n    os.system(f'echo {i}')"
    )
    done = subprocess.run(
        [COMMAND, "exec", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert done.stdout == "".join(f"{i}\n{i}\n{i}\n" for i in range(50))


def test_a_pipe_gets_what_was_printed(bell: Bell) -> None:
    assert bell("exec", r"print('\x1b[31mred\x1b[0m 10%\r20%', end='')").stdout == (
        "\x1b[31mred\x1b[0m 10%\r20%"
    )


def test_output_over_the_limit_is_cut_and_can_be_fetched(bell: Bell, tmp_path: Path) -> None:
    done = bell("exec", "--output", "1KB", "--get", ".outputs/cell-1.txt", "print('x' * 9000)")
    start, words, end = done.stdout.splitlines()
    assert start + end == "x" * 1023
    left_out = 9001 - 1024
    where = "/workspace/.outputs/cell-1.txt"
    assert words == f"[… {left_out:,} bytes left out; all of it is in {where} …]"
    assert done.stderr == (
        f"· output over 1,024 bytes goes to {where}\n"
        f"· the output is cut to 1 KB; all of it is in {where}\n· copied cell-1.txt\n"
    )
    assert (tmp_path / "cell-1.txt").read_text() == "x" * 9000 + "\n"


def test_output_that_is_cut_and_not_fetched_says_how_it_can_be(bell: Bell) -> None:
    done = bell("exec", "--output", "1KB", "'x' * 9000")
    assert len(done.stdout) < 1200 and done.stdout.endswith("xx'\n")
    assert done.stderr.endswith(
        "· with --get .outputs/cell-1.txt the next run copies all of it here\n"
    )


# Plots

TWO_PLOTS = (
    "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nplt.plot([3, 4]); plt.show()"
)


def test_plots_are_saved_and_named_and_never_overwrite(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "plot-1.png").write_text("mine")
    done = bell("exec", TWO_PLOTS)
    assert done.stderr == "· plot saved as plot-2.png\n· plot saved as plot-3.png\n"
    assert (tmp_path / "plot-1.png").read_text() == "mine"
    assert (tmp_path / "plot-2.png").read_bytes().startswith(PNG)
    assert (tmp_path / "plot-3.png").read_bytes().startswith(PNG)


def test_what_a_terminal_cannot_show_is_saved_as_a_page(bell: Bell, tmp_path: Path) -> None:
    done = bell("exec", "from IPython.display import HTML\nHTML('<b>bold</b>')")
    assert (done.stdout, done.stderr) == ("", "· plot saved as plot-1.html\n")
    assert (tmp_path / "plot-1.html").read_text() == "<b>bold</b>"


def test_plots_go_to_the_folder_that_was_named(bell: Bell, tmp_path: Path) -> None:
    bell("exec", "--plots", "out/figures", TWO_PLOTS)
    assert sorted(path.name for path in (tmp_path / "out" / "figures").iterdir()) == [
        "plot-1.png",
        "plot-2.png",
    ]


# Files, settings


def test_files_are_put_and_fetched(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"some data")
    code = "data = open('in.txt').read()\nopen('out.txt', 'w').write(data.upper())"
    done = bell("exec", "--put", "in.txt", "--get", "out.txt", code)
    assert done.returncode == exit_status.OK, done.stderr
    assert (tmp_path / "out.txt").read_text() == "SOME DATA"


def test_a_fetched_file_replaces_a_link_and_does_not_follow_it(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "out.txt").symlink_to("precious")
    bell("exec", "--get", "out.txt", "print('new', file=open('out.txt', 'w'))")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "out.txt").read_text() == "new\n"


def test_a_file_that_is_not_there_afterwards_is_a_failure(bell: Bell, tmp_path: Path) -> None:
    done = bell("exec", "--get", "nothing.txt", "--get", "../../etc/passwd", "1")
    assert done.returncode == exit_status.FAILED
    assert "'nothing.txt': there is no such file" in done.stderr
    assert "'../../etc/passwd' is not a path below /workspace" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_mounted(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("mounted")
    done = bell("exec", "--mount", "/data=./data", "open('/data/a.txt').read()")
    assert done.stdout == "'mounted'\n"


def test_the_command_line_beats_the_environment_which_beats_the_file(
    bell: Bell, tmp_path: Path
) -> None:
    (tmp_path / "some.toml").write_text("[limits]\noutput = 100\n")
    file, long = ("--config", "some.toml"), "print('Q' * 500, end='')"
    assert bell("exec", *file, long).stdout.count("Q") == 100
    assert bell("exec", *file, long, DIVINGBELL_OUTPUT="200").stdout.count("Q") == 200
    found = bell("exec", *file, "--output", "300", long, DIVINGBELL_OUTPUT="200")
    assert found.stdout.count("Q") == 300


# JSON


def test_json_holds_the_whole_result(bell: Bell) -> None:
    code = (
        "import sys\nfrom IPython.display import Image, display\nprint('out')\n"
        f"print('err', file=sys.stderr)\ndisplay(Image(data={PNG!r}, format='png'))\n"
        "{'a': [1], 'b': {2}}"
    )
    done = bell("exec", "--json", code)
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["success"] is True
    assert found["status"] == "ok"
    assert found["limit"] is None and found["error"] is None
    assert found["value"] == {"a": [1], "b": {"$set": [2]}}
    assert found["value_kind"] == "data"
    assert found["cell"] == 1
    assert found["usage"]["wall_ms"] > 0
    assert found["execution_time_ms"] > 0
    assert found["notes"] == []
    assert [(item["type"], item["name"]) for item in found["outputs"]] == [
        ("text/plain", "stdout"),
        ("text/plain", "stderr"),
        ("image/png", "display"),
        ("text/plain", "result"),
    ]
    assert base64.b64decode(found["outputs"][2]["data"]) == PNG
    assert found["outputs"][2]["encoding"] == "base64"
    assert found["outputs"][2]["path"] == "/workspace/.outputs/cell-1-1.png"


def test_json_tells_of_failures_and_keeps_the_exit_status(bell: Bell) -> None:
    done = bell("exec", "--json", "--timeout", "0.5", "while True: pass")
    found = json.loads(done.stdout)
    assert (found["success"], found["status"]) == (False, "timeout")
    assert done.returncode == exit_status.TIMEOUT


# Exit statuses


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["exec", "pass"], exit_status.OK, ""),
        (["exec", "1/0"], exit_status.FAILED, "ZeroDivisionError"),
        (["exec", "raise SystemExit(7)"], 7, ""),
        (["exec", "import sys; sys.exit()"], exit_status.OK, ""),
        (["exec", "import sys; sys.exit('3')"], exit_status.FAILED, "3\n"),
        (["exec", "if"], exit_status.FAILED, "SyntaxError"),
        (["exec", "--memory", "99MB", "bytearray(1 << 30)"], exit_status.LIMIT, "99 MB"),
        (["exec", "import os; os._exit(0)"], exit_status.KILLED, "os._exit"),
        (["exec", "--timeout", "0.5", "while True: pass"], exit_status.TIMEOUT, "0.5 s"),
    ],
)
def test_how_the_code_ended_is_the_exit_status(
    bell: Bell, arguments: list[str], status: int, words: str
) -> None:
    done = bell(*arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert "surfaces/cli" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["exec"], "CODE"),
        (["nonsense"], "nonsense"),
        (["exec", "--timout", "3", "1"], "--timeout"),
        (["exec", "--timeout", "soon", "1"], "--timeout"),
        (["exec", "--memory", "lots", "1"], "'lots' is not a size"),
        (["exec", "--memory", "1MB", "1"], "at least 32MB"),
        (["exec", "--backend", "wishful", "1"], "wishful"),
        (["exec", "--config", "missing.toml", "1"], "missing.toml"),
        (["exec", "--mount", "/data", "1"], "/inside=./outside"),
        (["exec", "--mount", "/data=./missing", "1"], "does not exist"),
        (["exec", "--put", "missing.txt", "1"], "missing.txt"),
        (["run", "missing.py"], "missing.py can't be read: No such file"),
        (["run", "."], "Is a directory"),
        (["run", "/dev/zero"], "are allowed"),
    ],
)
def test_wrong_usage_is_one_clear_line(bell: Bell, arguments: list[str], words: str) -> None:
    done = bell(*arguments)
    assert done.returncode == exit_status.USAGE
    assert done.stderr.startswith("divingbell: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_file_that_is_not_utf_8_is_refused_clearly(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"a = 1\nprint('caf\xe9')\n")
    done = bell("run", "latin.py")
    assert done.returncode == exit_status.USAGE
    assert done.stderr == (
        "divingbell: latin.py is not UTF-8: byte 0xe9 in line 2; save it as UTF-8 and try again\n"
    )


def test_a_sandbox_that_is_unavailable_has_its_own_status(bell: Bell) -> None:
    done = bell("exec", "1", DIVINGBELL_HOME="/dev/null/nowhere")
    assert done.returncode == exit_status.UNAVAILABLE
    assert done.stderr.startswith("divingbell: ")
    assert "Traceback" not in done.stderr


def test_verbose_shows_the_log_and_where_an_error_came_from(bell: Bell) -> None:
    assert "session" in bell("exec", "--verbose", "1").stderr
    assert "Traceback" in bell("exec", "-v", "1", DIVINGBELL_HOME="/dev/null/nowhere").stderr


def test_ctrl_c_interrupts_the_cell(tmp_path: Path) -> None:
    code = (
        "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(600)\n"
        "finally:\n    print('cleaned up')"
    )
    with started(tmp_path, "exec", "--timeout", "600", code) as process:
        first_line(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == exit_status.INTERRUPTED
    assert out == "cleaned up\n"
    assert err == "Cancelled: the cell was interrupted\n"


DEAF = (
    "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready', flush=True)"
    "\nwhile True:\n    try: time.sleep(600)\n    except BaseException: print('no', flush=True)"
)


def test_a_second_ctrl_c_leaves(tmp_path: Path) -> None:
    with started(tmp_path, "exec", "--timeout", "600", DEAF) as process:
        first_line(process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == exit_status.INTERRUPTED


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, exit_status.INTERRUPTED),
        (signal.SIGTERM, exit_status.TERMINATED),
        (signal.SIGHUP, exit_status.TERMINATED),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_no_process_is_left_behind(tmp_path: Path, number: int, status: int) -> None:
    code = (
        "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\n"
        "print('ready', flush=True)\ntime.sleep(600)"
    )
    with started(tmp_path, "exec", "--timeout", "600", code) as process:
        first_line(process)
        below = family(process.pid)
        assert below
        process.send_signal(number)
        err = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == status
    assert "Traceback" not in err
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))


def test_a_reader_that_leaves_ends_the_command_quietly(tmp_path: Path) -> None:
    code = "import itertools\nfor i in itertools.count(): print(i, flush=True)"
    with started(tmp_path, "exec", "--timeout", "600", code) as process:
        assert first_line(process) == "0\n"
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE) == exit_status.BROKEN_PIPE
        assert process.stderr.read() == ""


def test_a_reader_that_is_slow_does_not_hold_up_the_session(tmp_path: Path) -> None:
    # More than a pipe takes, and nobody reads until the session has gone on to its end.
    code = "print('x' * 300_000)\nopen('mark', 'w').write('made')"
    with started(tmp_path, "exec", "--get", "mark", code) as process:
        wait_until((tmp_path / "mark").exists)
        out, err = process.communicate(timeout=PATIENCE)
    assert out == "x" * 300_000 + "\n4\n"
    assert err == "· copied mark\n"
    assert process.returncode == exit_status.OK


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [COMMAND, "exec", "print(1)"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
            timeout=PATIENCE,
            check=False,
        )
    assert done.stderr == "divingbell: the output can't be written: No space left on device\n"
    assert done.returncode == exit_status.FAILED


def test_closed_descriptors_do_no_harm(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {COMMAND} exec 'print(6 * 7); 1/0' <&- 2>&-"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("42\n", exit_status.FAILED)
    done = subprocess.run(
        ["sh", "-c", f"exec {COMMAND} exec 'print(6 * 7)' <&- >&- 2>&-"],
        cwd=tmp_path,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == exit_status.OK


def test_a_line_for_people_is_one_write_so_that_no_other_comes_within_it(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        done = subprocess.run(
            [COMMAND, "exec", "1"],
            stderr=theirs,
            cwd=tmp_path,
            env=environment(DIVINGBELL_MEMORY="much"),
            timeout=PATIENCE,
            check=False,
        )
        ours.setblocking(False)
        written = []
        with contextlib.suppress(BlockingIOError):
            while True:
                written.append(ours.recv(65536))
    assert done.returncode == exit_status.USAGE
    assert written and all(each.endswith(b"\n") for each in written), written


# Help


def test_help_lists_every_command_and_exit_status(bell: Bell) -> None:
    shown = " ".join(bell("--help").stdout.split())
    for command in ("run", "exec", "shell", "doctor", "demo"):
        assert f" {command} " in shown
    for number, meaning in exit_status.MEANINGS.items():
        assert f" {number} {meaning}" in shown


@pytest.mark.parametrize("command", ["run", "exec", "shell", "doctor", "demo"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == exit_status.OK
    shown = capsys.readouterr().out
    assert f"Usage: divingbell {command}" in shown
    # They are listed once, and the commands that have several say where.
    assert exit_status.MEANINGS[exit_status.KILLED] not in shown
    assert ("see divingbell --help" in shown) is (command in ("run", "exec", "doctor"))


def test_the_version_is_told(bell: Bell) -> None:
    from importlib.metadata import version

    assert bell("--version").stdout == version("divingbell") + "\n"


def _loaded_by(code: str) -> list[str]:
    """The modules that a program loads beyond those of Python's own start."""
    code = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return done.stdout.splitlines()[-1].split()


def test_help_loads_no_command_and_nothing_that_only_they_need() -> None:
    loaded = _loaded_by("from divingbell.surfaces.cli import main\nmain(['--help'])")
    heavy = {"asyncio", "prompt_toolkit", "pygments", "markdown_it", "pydantic", "mcp", "socket"}
    assert not heavy & set(loaded)
    assert {name for name in loaded if name.startswith("divingbell")} == {
        "divingbell",
        "divingbell.errors",
        "divingbell.logs",
        "divingbell.principal",
        "divingbell.surfaces",
        "divingbell.surfaces.cli",
        "divingbell.surfaces.cli.command_table",
        "divingbell.surfaces.cli.exit_status",
        "divingbell.surfaces.cli.main",
    }
    assert len(loaded) < 100, "each takes a third of a millisecond"


def test_what_reads_command_lines_knows_the_commands_that_help_lists(bell: Bell) -> None:
    known = [name for name in app if not name.startswith("-")]
    assert sorted(known) == sorted(command.name for command in COMMANDS)
    shown = bell("--help").stdout
    assert all(re.search(rf"^  {name} ", shown, re.M) for name in known)
    assert bell("-h").stdout == bell().stdout == shown


def test_help_is_as_narrow_as_the_terminal(bell: Bell) -> None:
    for columns in ("40", "10"):
        shown = bell("--help", COLUMNS=columns).stdout
        assert max(map(len, shown.splitlines())) <= 40


def test_importing_the_library_loads_next_to_nothing() -> None:
    loaded = _loaded_by("import divingbell")
    assert [name for name in loaded if name.startswith("divingbell")] == ["divingbell"]
    assert len(loaded) < 40, "no more than typing and importlib need"


def test_what_a_command_says_in_the_list_is_what_its_function_says() -> None:
    for name, listed in app._commands.items():
        if not isinstance(listed, CommandSpec):
            continue
        module, _, function = listed.import_path.partition(":")
        found = getattr(importlib.import_module(module), function)
        said = found.help if isinstance(found, App) else inspect.getdoc(found)
        assert listed.help is not None and listed.help.splitlines()[0] == said.strip(), name


@pytest.mark.parametrize("command", [["doctor"], ["stats"]])
def test_a_reader_that_leaves_a_report_is_no_failure(tmp_path: Path, command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run(
            [COMMAND, *command],
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(),
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == exit_status.BROKEN_PIPE, done.stderr
    assert done.stderr == ""


def test_a_command_with_servers_books_nothing_as_spared(bell: Bell, tmp_path: Path) -> None:
    server = Path(__file__).parents[2] / "servers" / "galley.py"
    entry = {"command": sys.executable, "args": [str(server)]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"galley": entry}}))
    home = {"XDG_DATA_HOME": str(tmp_path / "data")}
    given = ("--mcp-config", str(tmp_path / "mcp.json"))
    done = bell("exec", *given, "--json", "servers.galley.add(1, 1)", **home)
    ledger = json.loads(done.stdout)["ledger"]
    assert ledger["calls"] == 1 and ledger["direct_definition_tokens"] == 0
    total = json.loads(bell("stats", "--json", **home).stdout)["total"]
    assert total["executions"] == total["direct"] == 0
