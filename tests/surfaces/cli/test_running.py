"""`run` and `exec`: one piece of code, and nothing done that it has no need of."""

import json
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from divingbell.errors import ConfigError
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.arguments import FLAGS
from divingbell.surfaces.cli.options import RunOptions

from .command import Bell, runner

SERVER = """
import sys
from pathlib import Path
from mcp.server import MCPServer

Path(__file__).with_name(f"started-{sys.argv[1]}").touch()
mcp = MCPServer(sys.argv[1])

@mcp.tool()
def double(number: int) -> int:
    return 2 * number

mcp.run()
"""


KEY = "ghp_1A2b3C4d5E6f7G8h9I0jKlMnOpQrStUvWxYz"


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    return runner(tmp_path)


@pytest.fixture
def two_servers(tmp_path: Path) -> Path:
    """A list of servers that leave a mark when they start: alpha and beta."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(script)]}
    servers = {name: {**entry, "args": [*entry["args"], name]} for name in ("alpha", "beta")}
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"mcpServers": servers}))
    return listed


def started(listed: Path) -> list[str]:
    return sorted(path.name.removeprefix("started-") for path in listed.parent.glob("started-*"))


@pytest.mark.parametrize(
    ("code", "printed", "connected"),
    [
        ("1 + 1", "2", []),
        ("from servers.beta import double\ndouble(21)", "42", ["beta"]),
        ("call_mcp_tool('alpha.double', {'number': 4})", "8", ["alpha"]),
        ("len(search_tools(''))", "2", ["alpha", "beta"]),
        # It is not seen in the code, and so begun when it is asked for.
        ("getattr(globals()['ser' + 'vers'], 'be' + 'ta').double(3)", "6", ["beta"]),
    ],
)
def test_only_servers_that_the_code_asks_for_are_started(
    bell: Bell,
    two_servers: Path,
    code: str,
    printed: str,
    connected: list[str],
) -> None:
    done = bell("exec", "--mcp-config", str(two_servers), code)
    assert (done.stdout, done.returncode) == (f"{printed}\n", 0), done.stderr
    assert started(two_servers) == connected


def test_resources_of_a_server_that_the_code_does_not_name_can_be_read(
    bell: Bell,
    two_servers: Path,
) -> None:
    code = "getattr(globals()['ser' + 'vers'], 'be' + 'ta').resources()"
    done = bell("exec", "--mcp-config", str(two_servers), code)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
    assert started(two_servers) == ["beta"]


@pytest.mark.parametrize(("name", "loaded"), [("'pandas'", True), ("'pan' + 'das'", False)])
def test_only_modules_that_the_code_names_are_imported_before_it(
    bell: Bell,
    name: str,
    loaded: bool,
) -> None:
    done = bell("exec", f"import sys; ({name}) in sys.modules", DIVINGBELL_PRELOAD="numpy,pandas")
    assert done.stdout == f"{loaded}\n", done.stderr


def test_without_servers_in_the_code_the_sdk_is_not_loaded(
    bell: Bell,
    two_servers: Path,
    tmp_path: Path,
) -> None:
    script = tmp_path / "look.py"
    script.write_text(
        "import sys\nfrom divingbell.surfaces.cli import main\n"
        f"main(['exec', '--mcp-config', {str(two_servers)!r}, '1 + 1'])\n"
        "print([m for m in ('mcp', 'pydantic', 'httpx2', 'rich') if m in sys.modules])"
    )
    done = bell(str(script), program=sys.executable)
    assert done.stdout == "2\n[]\n", done.stderr


# Scripts

SCRIPT = """
import argparse, sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("names", nargs="*")
parser.add_argument("--timeout")
if __name__ == "__main__":
    given = parser.parse_args()
    print(parser.prog, given.names, given.timeout)
    print(sys.argv[0] == __file__, "argparse" in Path(__file__).read_text())
    sys.exit(len(given.names))
"""


@pytest.mark.parametrize(
    ("words", "printed", "status"),
    [
        (["report.py"], "report.py [] None", 0),
        (["report.py", "a", "b c"], "report.py ['a', 'b c'] None", 2),
        (["--timeout", "9", "report.py", "a", "--timeout", "soon"], "report.py ['a'] soon", 1),
        (["--timeout=9", "-v", "--", "report.py", "--", "-x"], "report.py ['-x'] None", 1),
    ],
)
def test_all_after_the_file_belongs_to_the_script(
    bell: Bell, tmp_path: Path, words: list[str], printed: str, status: int
) -> None:
    (tmp_path / "report.py").write_text(SCRIPT)
    done = bell("run", *words)
    assert done.stdout == f"{printed}\nTrue True\n", done.stderr
    assert done.returncode == status
    assert "SystemExit" not in done.stderr


def test_a_script_can_show_its_own_help(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "report.py").write_text(SCRIPT)
    done = bell("run", "report.py", "--help")
    assert done.stdout.startswith("usage: report.py [-h]")
    assert done.returncode == exit_status.OK


def test_code_that_is_no_file_has_arguments_and_no_file(bell: Bell) -> None:
    code = "import sys; print(sys.argv, '__file__' in globals())"
    assert bell("run", "-", "a", "-b", stdin=code).stdout == "['-', 'a', '-b'] False\n"
    assert bell("exec", code).stdout == "['-c'] False\n"


def test_standard_input_is_not_the_scripts(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "read.py").write_text("import sys\nprint(repr(sys.stdin.read()))\ninput()")
    done = bell("run", "read.py", stdin="some data")
    assert done.stdout == "''\n"
    assert "nobody can type into a sandbox" in done.stderr


def test_the_options_without_a_value_are_known() -> None:
    hints = get_type_hints(RunOptions)
    flags = {f"--{item.name}" for item in fields(RunOptions) if hints[item.name] is bool}
    assert flags | {"--help", "-h", "-v"} == FLAGS


def test_personal_data_is_kept_from_whoever_reads_the_output(bell: Bell, tmp_path: Path) -> None:
    (tmp_path / "letter.py").write_text("import sys; print('to', sys.argv[1], 'sk' in sys.argv)")
    more = {"XDG_DATA_HOME": str(tmp_path / "data")}
    plain = bell("run", "letter.py", "ann@example.org", **more)
    assert plain.stdout == "to ann@example.org False\n", plain.stderr
    plain = bell("exec", f"print('to ann@example.org'); {KEY!r}", **more)
    assert plain.stdout == f"to ann@example.org\n'{KEY}'\n", "a person reads this"
    for options in (["--private"], ["--privacy", "personal"], ["--privacy=personal"]):
        done = bell("run", *options, "letter.py", "ann@example.org", "sk", **more)
        assert re.fullmatch(r"to \[EMAIL_\d+\] True\n", done.stdout), done.stderr
    code = "print('to ann@example.org'); {'email': 'ann@example.org'}"
    done = bell("exec", "--private", "--json", code, **more)
    assert "[EMAIL_" in done.stdout and "ann@" not in done.stdout + done.stderr
    revealed = bell("vault", "reveal", "--to-program", stdin=done.stdout, **more)
    assert "to ann@example.org" in revealed.stdout, revealed.stderr
    done = bell("exec", "--private", "--privacy", "off", "1", **more)
    assert "exclude each other" in done.stderr and done.returncode == exit_status.of_error(
        ConfigError("")
    )


def test_python_can_run_it_as_a_module(bell: Bell) -> None:
    done = bell("-m", "divingbell", "exec", "6 * 7", program=sys.executable)
    assert (done.stdout, done.stderr, done.returncode) == ("42\n", "", 0)


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        (
            "open('here.csv')",
            "· here.csv is a file of this machine: copy it in with --put here",
        ),
        ("open('my data.csv')", "copy it in with --put 'my data.csv'"),
        ("open('elsewhere.csv')", ""),
        ("open('../here.csv')", ""),
        ("raise FileNotFoundError('here.csv' * 1000)", ""),
        ("raise ValueError(\"[Errno 2] No such file or directory: 'here.csv'\")", ""),
    ],
)
def test_a_file_of_this_machine_that_the_code_misses_can_be_copied_in(
    bell: Bell, tmp_path: Path, code: str, hint: str
) -> None:
    for name in ("here.csv", "my data.csv"):
        (tmp_path / name).write_text("a,b\n")
    told = bell("exec", code).stderr
    assert hint in told
    assert ("is a file of this machine" in told) == bool(hint)
