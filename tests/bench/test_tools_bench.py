"""The benchmark of tools itself works, with tiny counts. Times are never judged here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "tools.py"
TINY = ("--quick", "--rounds=1", "--starts=1", "--questions=1")
PATIENCE = 300.0
TOOLS = {
    "excel": {
        "goal_seek": "Find the value of one cell that makes another cell equal a target",
        "format_range": "Set font, colour and number format of cells",
    },
    "git": {"git_log": "Show the commits of a branch"},
}
"""Some that the questions ask for, so that it works without the lists of real servers."""

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

Rows = list[dict[str, str]]


def bench(folder: Path, *parts: str) -> Rows:
    """Run some parts of it; return the rows."""
    (folder / "tools").mkdir()
    for server, tools in TOOLS.items():
        listed = [
            {"name": name, "description": words, "inputSchema": SCHEMA}
            for name, words in tools.items()
        ]
        (folder / "tools" / f"{server}.json").write_text(json.dumps(listed))
    kept = folder / "rows.json"
    only = [f"--only={part}" for part in parts]
    done = subprocess.run(
        [sys.executable, SCRIPT, *TINY, *only, f"--json={kept}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        env={**os.environ, "DIVINGBELL_TEST_DATA": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(kept.read_text("utf-8"))
    rows: Rows = written["rows"]
    for row in rows:
        assert row["median"] and row["subject"] in done.stdout
    return rows


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return bench(tmp_path_factory.mktemp("calls"), "calls", "gather", "serve", "connect")


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    return bench(tmp_path_factory.mktemp("lists"), "search", "hold", "tokens")


def subjects(rows: Rows, measure: str) -> list[str]:
    return [row["subject"] for row in rows if row["measure"] == measure]


def test_calls_are_measured_both_ways_over_both_transports_in_both_eras(calls: Rows) -> None:
    found = subjects(calls, "a call")
    assert len(found) == len(set(found)) == 8
    assert sum("from code" in subject for subject in found) == 4
    assert sum("stdio" in subject for subject in found) == 4
    assert sum("2026" in subject for subject in found) == 4


def test_served_calls_are_measured_against_a_plain_server_in_both_eras(calls: Rows) -> None:
    rows = [row for row in calls if row["measure"] == "a warm 1+1 over HTTP"]
    assert [row["subject"] for row in rows] == [
        "protocol of 2026: divingbell serve",
        "protocol of 2026: plain server, no walls",
        "protocol of 2025: divingbell serve",
        "protocol of 2025: plain server, no walls",
    ]
    assert [bool(row["target"]) for row in rows] == [True, False, True, False]


def test_calls_at_once_and_starts_are_measured_against_something(calls: Rows) -> None:
    ours = [row for row in calls if row["target"]]
    assert {row["measure"] for row in ours} >= {"a call", "connecting"}
    assert all(row["ratio"] for row in calls)


def test_all_tools_are_searched_from_the_gateway_and_from_a_cell(lists: Rows) -> None:
    assert subjects(lists, "search_tools") == [
        "3 tools: in the gateway",
        "3 tools: from inside a cell",
    ]


def test_what_it_takes_to_hold_all_tools_is_told(lists: Rows) -> None:
    held = [row["ratio"] for row in lists if row["measure"] == "holding all tools"]
    assert sum("MB" in words for words in held) == 3


def test_tokens_are_counted_over_the_whole_way(lists: Rows) -> None:
    rows = [row for row in lists if row["measure"] == "tokens to use 1 tool"]
    names = [row["subject"].removeprefix("· ") for row in rows]
    assert names[1:5] == ["own tools and instructions", "search", "details", "call"]
    whole, *steps = (int(row["median"].split()[0].replace(",", "")) for row in rows[:5])
    assert whole == sum(steps)
