"""`divingbell review`: what code would try to do, without running it."""

import io
import json
from pathlib import Path

import pytest

from divingbell.surfaces.cli import main


def test_it_says_what_would_happen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "plan.py"
    script.write_text("from servers.shop import refund\nwhile True:\n    refund(1)\n")
    assert main(["review", str(script)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "it would run, and its result would tell of this"
    assert "  · warn (loop): line 2 loops without an end" in shown
    assert shown[-1] == "  · tools: shop.refund"


@pytest.mark.parametrize(("action", "status"), [("warn", 0), ("ask", 1), ("deny", 1)])
def test_the_status_goes_by_the_worst_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    action: str, status: int,
) -> None:  # fmt: skip
    config = tmp_path / "divingbell.toml"
    config.write_text(f'[review.rules]\nprocess = "{action}"')
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"!ls\nimport requests")))
    assert main(["review", "-", "--json", "--config", str(config)]) == status
    shown = json.loads(capsys.readouterr().out)
    assert shown["action"] == action and shown["enabled"] is True
    assert [one["kind"] for one in shown["findings"]] == ["process", "network"]


def test_a_review_that_is_off_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, script = tmp_path / "divingbell.toml", tmp_path / "plan.py"
    config.write_text('[review]\nenabled = false\n[review.rules]\nprocess = "deny"')
    script.write_text("!ls")
    assert main(["review", str(script), "--config", str(config)]) == 0
    assert "turned off" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "nowhere.py"]) == 2
    assert "nowhere.py can't be read" in capsys.readouterr().err


def test_what_is_no_python_would_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "plan.py"
    script.write_text("def f(:\n")
    assert main(["review", str(script)]) == 1
    assert capsys.readouterr().out.startswith("it would fail: it is no Python\n")


def test_the_cells_of_a_notebook_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = tmp_path / "plan.ipynb"
    cells = [
        {"cell_type": "markdown", "source": "# import requests"},
        {"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": []},
        {"cell_type": "code", "source": "import math\nimport requests"},
    ]
    notebook.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    main(["review", str(notebook)])
    assert "(network): code cell 2, line 2" in capsys.readouterr().out
    main(["review", str(notebook), "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert [len(each["findings"]) for each in shown["cells"]] == [0, 1]
    notebook.write_text("{}")
    assert main(["review", str(notebook)]) == 2
    assert "is no notebook" in capsys.readouterr().err
