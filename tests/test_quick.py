"""`./dev test --quick`: a part of the tests, chosen in one place."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SLOW

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"


def collected(*arguments: str) -> set[str]:
    """The tests that a quick run with these arguments would have."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--quick", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


def files_of(place: Path) -> set[Path]:
    return {place} if place.is_file() else set(place.rglob("test_*.py"))


def test_it_leaves_out_what_is_listed_as_slow_and_nothing_else() -> None:
    quick = {ROOT / test.split("::")[0] for test in collected()}
    slow = set().union(*(files_of(TESTS / name) for name in SLOW))
    assert quick and quick.isdisjoint(slow)
    others = files_of(TESTS) - slow - quick
    assert all("= libraries.need(" in path.read_text("utf-8") for path in others)


@pytest.mark.parametrize("name", SLOW)
def test_what_is_listed_has_tests(name: str) -> None:
    assert files_of(TESTS / name)


def test_it_goes_with_other_arguments_of_pytest() -> None:
    chosen = collected("tests/settings", "tests/bench", "-k", "folder")
    assert chosen and all(test.startswith("tests/settings/") for test in chosen)


def test_help_names_it() -> None:
    shown = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True)
    assert "--quick" in shown.stdout
