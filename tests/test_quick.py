"""`./dev test --quick`: a part of the tests, chosen in one place."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SLOW

ROOT = Path(__file__).parents[1]


def collected(*arguments: str) -> set[str]:
    """The tests that a run with these arguments would have."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.fixture(scope="module")
def whole() -> set[str]:
    return collected()


def of(tests: set[str], name: str) -> set[str]:
    """Those of a file or folder of tests."""
    return {test for test in tests if test.startswith((f"tests/{name}::", f"tests/{name}/"))}


def test_it_leaves_out_what_is_listed_as_slow_and_nothing_else(whole: set[str]) -> None:
    slow = set().union(*(of(whole, name) for name in SLOW))
    quick = collected("--quick")
    assert quick == whole - slow
    assert quick and slow


@pytest.mark.parametrize("name", SLOW)
def test_what_is_listed_has_tests(name: str, whole: set[str]) -> None:
    assert of(whole, name)


def test_it_goes_with_other_arguments_of_pytest(whole: set[str]) -> None:
    chosen = collected("--quick", "tests/settings", "tests/bench", "-k", "folder")
    assert chosen and chosen < of(whole, "settings")


def test_help_names_it() -> None:
    shown = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True)
    assert "--quick" in shown.stdout
