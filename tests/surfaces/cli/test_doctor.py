"""`divingbell doctor`: its report, its check, and its exit status."""

import json
from pathlib import Path

import pytest

from divingbell.promises import PROMISES
from divingbell.promises.check.self_check import Verdict
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.doctor import Paper

from .command import Bell, runner


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    return runner(tmp_path)


def test_doctor_says_what_is_in_force(bell: Bell) -> None:
    done = bell("doctor")
    assert done.returncode == exit_status.OK, done.stderr
    assert "backend local, limits by " in done.stdout


def test_doctor_reports_even_if_there_is_no_sandbox(bell: Bell) -> None:
    done = bell("doctor", "--json", DIVINGBELL_HOME="/dev/null/nowhere")
    found = json.loads(done.stdout)
    assert done.returncode == exit_status.UNAVAILABLE
    assert found["findings"]
    assert found["in_force"] is None
    assert "/dev/null/nowhere" in found["failure"]


def test_doctor_attacks_a_session_and_counts(bell: Bell) -> None:
    done = bell("doctor", "--check", "--only", "F01", "--only", "P01")
    assert done.returncode == exit_status.OK, done.stdout + done.stderr
    assert "✓ F01  filesystem: read /etc/shadow" in done.stdout
    assert done.stdout.endswith("\n2 kept, 0 broken\n")
    found = json.loads(bell("doctor", "--only", "F01", "--json").stdout)
    assert found["in_force"]["backend"] == "local"
    assert (found["kept"], found["broken"]) == (1, 0)
    assert found["promises"][0]["id"] == "F01"
    assert found["promises"][0]["kept"] is True


def test_doctor_knows_which_promises_there_are(bell: Bell) -> None:
    done = bell("doctor", "--only", "nonsense")
    assert done.returncode == exit_status.USAGE
    assert "there is no promise nonsense" in done.stderr
    elsewhere = bell("doctor", "--only", "B01")
    assert elsewhere.returncode == exit_status.USAGE and "in a browser" in elsewhere.stderr


def test_a_broken_promise_is_told_and_fails_the_doctor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    paper = Paper(quiet=False)
    paper.verdict(Verdict(PROMISES[0], True, "fine"))
    paper.verdict(Verdict(PROMISES[1], False, "it got \x1b[31mout"))
    paper.conclude(checked=True)
    shown = capsys.readouterr().out
    assert f"✗ {PROMISES[1].id}" in shown
    assert r"seen: it got \x1b[31mout" in shown
    assert shown.endswith("1 kept, 1 broken\n")
    assert paper.status == exit_status.FAILED
