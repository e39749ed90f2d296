"""The benchmark of search itself works, and never counts a question that it has chosen by."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from divingbell.tool import Tool

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0
TOOLS = {
    "excel": {"goal_seek": "Find the input that makes a cell equal a value.", "format": "Format."},
    "git": {"git_add": "Adds file contents to the staging area.", "git_log": "Shows commits."},
}
"""Some that the questions ask for, so that it works without the lists of real servers."""


@pytest.fixture(scope="module")
def bench() -> Any:
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        yield importlib.import_module("validation")
    finally:
        sys.path.remove(str(ROOT / "bench"))


def test_it_runs_without_the_lists_of_real_servers(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    for server, tools in TOOLS.items():
        listed = [{"name": name, "description": text} for name, text in tools.items()]
        (tmp_path / "tools" / f"{server}.json").write_text(json.dumps(listed))
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "search.py", "--lost"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        env={**os.environ, "DIVINGBELL_TEST_DATA": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    for words in ("4 tools of 2 servers", "held out", "in two looks", "upper bound", "are lost in"):
        assert words in done.stdout


def test_questions_about_one_server_are_in_one_fold(bench: Any) -> None:
    asked = [
        bench.Question(f"q{number}", frozenset({"a.x"}), f"server{number % 13}", "")
        for number in range(100)
    ]
    folds = bench.folds(asked)
    by_server: dict[str, set[int]] = {}
    for question, fold in zip(asked, folds, strict=True):
        by_server.setdefault(question.home, set()).add(fold)
    assert all(len(found) == 1 for found in by_server.values())
    assert set(folds) == set(range(bench.FOLDS))


def test_a_question_is_never_counted_with_what_was_chosen_by_it(bench: Any) -> None:
    tools = [Tool(f"s{n}", "find", f"s{n}", "find", f"Finds thing{n}.") for n in range(12)]
    asked = [bench.Question(f"thing{n}", frozenset({f"s{n}.find"}), f"s{n}", "") for n in range(12)]
    trials = bench.Trials(tools, asked)
    chosen_by: list[set[int]] = []

    def choose(counts: Any) -> int:
        chosen_by.append({number for number in range(len(asked)) if counts(number)})
        return len(chosen_by) - 1

    # Which choice a question went with stands in the place of how it went.
    trials.outcomes = lambda choice: [choice] * len(asked)
    went_with = bench.held_out(trials, choose)
    assert all(number not in chosen_by[choice] for number, choice in enumerate(went_with))
    assert {len(numbers) for numbers in chosen_by} <= {9, 10}


def test_choosing_takes_what_does_better_and_leaves_alone_what_does_not(bench: Any) -> None:
    tools = [
        *(Tool("a", f"zip{n}", "a", f"zip{n}", "Packs files.") for n in range(60)),
        *(Tool("b", f"other{n}", "b", f"other{n}", "About to erase.") for n in range(12)),
        Tool("c", "delete", "c", "delete", "Throws away."),
    ]
    asked = [bench.Question("erase", frozenset({"c.delete"}), "c", "")]
    start = bench.Choice().having("synonym", 0.0)
    grid = {"synonym": (0.0, 1.0), "names_server": (0.0, 3.0)}
    best = bench.chosen(bench.Trials(tools, asked), grid, lambda _: True, start)
    assert best.weights.synonym == 1.0
    assert best.having("synonym", 0.0) == start, "nothing is to be had from the other"
