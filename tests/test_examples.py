"""Each example runs as it stands, and shows what it is there to show."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import real_servers
from tests.real_servers import Command

EXAMPLES = Path(__file__).parents[1] / "examples"
PATIENCE = 120.0

SHOWN = {
    "quickstart.py": "ok 42\nrows: 3\nnp.int64(42)\nerror AttributeError\ntimeout 3\n",
    "streaming.py": ("step 0\nstep 1\nstep 2\na warning\nvalue: 'all done'\nstatus: ok\n"),
    "plot.py": None,  # tells the size of the image, which depends on matplotlib
    "host_functions.py": (
        "2 orders, 160.0 in all\n"
        "ToolError: there is no customer Nobody\n"
        "['host.find_orders']\n"
        "ann was told: your refund of 40.0 is on its way\n"
    ),
    "skill.py": "['Oslo AS', 'Lima Ltd']\n['top-customers']\n['Oslo AS']\n[]\n",
    "files.py": ("ok\nsales.csv: 33 bytes\ntotals.csv: 26 bytes\ncity,units\nLima,7\nOslo,21\n"),
}
FOLDER = "${EXAMPLE_FOLDER}"
SERVERS: dict[str, dict[str, Callable[[], Command]]] = {
    "many_rows.py": {"sqlite": lambda: real_servers.sqlite(f"{FOLDER}/orders.db")},
    "three_servers.py": {
        "git": lambda: real_servers.git(f"{FOLDER}/project"),
        "sqlite": lambda: real_servers.sqlite(f"{FOLDER}/history.db"),
        "files": lambda: real_servers.filesystem(FOLDER),
    },
    "slow_job.py": {"files": lambda: real_servers.filesystem(FOLDER)},
    "side_by_side.py": {"files": lambda: real_servers.filesystem(FOLDER)},
}
"""The servers that others wrote, as installed for the tests."""
ASKED = {
    "agents/ask_slow_job.py": "The tanks are full, at 200 bar.\n12 looks in 2 turns\n",
    "agents/ask_plot.py": "The dive went down to 20 m and took 40 minutes.\ndive.png: image/png\n",
    "agents/ask_helpers.py": (
        "  {1: 'complaint', 2: 'thanks', 3: 'question'}\n"
        "One complaint (letter 1), one thank-you and one question.\n2 turns of its own\n"
    ),
}
ASKED_WITH_SERVERS: dict[str, dict[str, Callable[[], Command]]] = {
    "agents/ask_many_rows.py": {"sqlite": lambda: real_servers.sqlite(f"{FOLDER}/expenses.db")},
    "agents/ask_three_servers.py": {
        "files": lambda: real_servers.filesystem(FOLDER),
        "sqlite": lambda: real_servers.sqlite(f"{FOLDER}/dives.db"),
        "time": real_servers.time,
    },
}
"""By an agent, with a script in the place of the model."""


def run(name: str, folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    shown = run(name, tmp_path)
    assert SHOWN[name] in (None, shown)


def test_the_plot_is_a_png(tmp_path: Path) -> None:
    assert "figure.png: " in run("plot.py", tmp_path, "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def config_of(name: str, folder: Path) -> Path:
    """Write an mcp.json with the servers of an example, as they are installed here."""
    entries = {}
    for server, installed in {**SERVERS, **ASKED_WITH_SERVERS}[name].items():
        command, arguments = installed()
        entries[server] = {"command": command, "args": arguments}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": entries}))
    return config


def run_with_servers(name: str, folder: Path) -> str:
    """Run an example with servers that are installed here already."""
    return run(name, folder, EXAMPLE_MCP_CONFIG=str(config_of(name, folder)))


def numbers(text: str) -> list[int]:
    return [int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", text)]


def check_many_rows(text: str) -> None:
    *shown, read, direct = text.splitlines()
    assert shown[0] == "10,000 orders, 5 of them strange:"
    assert [line.split()[0] for line in shown[2:]] == ["97", "2500", "4321", "7776", "9999"]
    assert numbers(read)[0] < 300
    assert numbers(direct)[0] > 100_000


def check_three_servers(text: str) -> None:
    assert text == (
        "report.md: 6 commits, 3 kinds\n"
        "10 calls of files, git, sqlite\n"
        "# Commits by kind\n\n"
        "- fix: 3 (Ben,Ada)\n- feat: 2 (Ada)\n- docs: 1 (Cleo)\n"
    )


def check_slow_job(text: str) -> None:
    done, looked, read = text.splitlines()
    assert done == "the job is done: 9 minutes at 40 m"
    assert numbers(looked)[0] > 1
    assert numbers(read)[0] < 30


def check_side_by_side(text: str) -> None:
    directly, in_code, _, *rows = text.splitlines()
    answer = "most errors: winch 44 (31 calls)"
    assert directly.removeprefix("directly").strip() == answer
    assert in_code.removeprefix("in code").strip() == answer
    table = {row.rstrip("0123456789, "): numbers(row) for row in rows}
    assert table["calls and their results"][1] == 0
    assert table["code and what it prints"][0] == 0
    direct, code = table["all"]
    assert direct > 10 * code
    # The ledger says the same of the calls without having done it.
    calls = table["calls and their results"][0]
    assert table["the ledger puts the direct calls at"] == pytest.approx([calls], rel=0.05)


CHECKS: dict[str, Callable[[str], None]] = {
    "many_rows.py": check_many_rows,
    "three_servers.py": check_three_servers,
    "slow_job.py": check_slow_job,
    "side_by_side.py": check_side_by_side,
}
"""What each of those with servers must show."""


@pytest.mark.parametrize("name", SERVERS)
def test_an_example_with_servers_shows_what_it_is_there_to_show(name: str, tmp_path: Path) -> None:
    CHECKS[name](run_with_servers(name, tmp_path))


@pytest.mark.parametrize("name", [*SERVERS, *ASKED_WITH_SERVERS])
def test_the_list_of_servers_beside_an_example_has_those_that_are_tested(name: str) -> None:
    listed = json.loads((EXAMPLES / name).with_suffix(".json").read_text("utf-8"))
    entries = listed["mcpServers"]
    assert set(entries) == set({**SERVERS, **ASKED_WITH_SERVERS}[name])
    assert {entry["command"] for entry in entries.values()} <= {"uvx", "npx"}


def test_every_example_is_run_here() -> None:
    elsewhere = {"web_service.py"}  # tests/test_web_example.py
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*SHOWN, *SERVERS} | elsewhere


# By an agent, with a script in the place of the model


@pytest.mark.parametrize("name", ASKED)
def test_an_agent_answers(name: str, tmp_path: Path) -> None:
    shown = run(name, tmp_path)
    assert shown.startswith("> ") and shown.endswith(ASKED[name])


def test_an_agent_adds_up_a_thousand_rows_and_reads_a_few(tmp_path: Path) -> None:
    shown = run_with_servers("agents/ask_many_rows.py", tmp_path)
    *lines, cost = shown.splitlines()
    assert lines[-1] == "Travel has cost boats the most: 16,665 of 49,804."
    assert "  boats    16665" in lines, "the figure is that of the data"
    turns, read = numbers(cost)
    assert turns == 2 and read < 3_000


def test_an_agent_works_with_three_servers(tmp_path: Path) -> None:
    shown = run_with_servers("agents/ask_three_servers.py", tmp_path)
    assert "  {'day': 'tuesday', 'depth': 31} noon in Oslo is" in shown
    assert shown.endswith("report.md.\ndeepest dive: 31 m on tuesday\n")


def test_every_example_of_an_agent_is_run_here() -> None:
    shared = {"agents/conversation.py"}
    found = {f"agents/{path.name}" for path in (EXAMPLES / "agents").glob("*.py")}
    assert found == {*ASKED, *ASKED_WITH_SERVERS} | shared
