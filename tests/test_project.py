"""The shape of the project: linters, types, borders between packages, public names."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import divingbell

ROOT = Path(__file__).parents[1]
INSIDE = ROOT / "src" / "divingbell_inside"
TRUSTED = ROOT / "src" / "divingbell"


def _run(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "command", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)], ids=" ".join
)
def test_linters_and_types(command: tuple[str, ...]) -> None:
    _run(*command)


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_the_inside_is_standard_library_and_ipython() -> None:
    allowed = set(sys.stdlib_module_names) | {"divingbell_inside", "IPython", "traitlets"}
    for path in INSIDE.glob("*.py"):
        assert _imports(path) <= allowed, path


def test_the_supervisor_is_small() -> None:
    assert len((INSIDE / "supervisor.py").read_text().splitlines()) <= 200


def test_nothing_is_ever_unpickled_on_the_host() -> None:
    for path in TRUSTED.rglob("*.py"):
        if "probes" not in path.parts:
            assert not _imports(path) & {"pickle", "cloudpickle", "marshal", "shelve"}, path


def test_the_folders_of_the_tests_are_the_rooms_of_the_source() -> None:
    tests = ROOT / "tests"
    of_their_own = {tests, *(tests / name for name in ("bench", "deploy", "inside", "smoke"))}
    for folder in {path.parent for path in tests.rglob("test_*.py")} - of_their_own:
        assert (TRUSTED / folder.relative_to(tests) / "__init__.py").exists(), folder


def test_public_names() -> None:
    assert divingbell.__all__ == [
        "Answer",
        "Approval",
        "Approver",
        "Asker",
        "Border",
        "CapacityError",
        "CommandEvent",
        "CommandHandle",
        "CommandOptions",
        "CommandResult",
        "Completion",
        "ConfigError",
        "Consumption",
        "DataFormat",
        "DiskFull",
        "Divingbell",
        "DivingbellError",
        "Event",
        "EventType",
        "Failure",
        "FileInfo",
        "FileKind",
        "FileMissing",
        "FileRefused",
        "FileTooLarge",
        "Files",
        "Finding",
        "FrameLibrary",
        "Gateway",
        "HostFunction",
        "InvalidInput",
        "Isolation",
        "Journal",
        "Ledger",
        "LimitName",
        "Limits",
        "NotRecorded",
        "OpenFile",
        "Output",
        "OutputName",
        "Policy",
        "Principal",
        "ProfileError",
        "RateExceeded",
        "Result",
        "Review",
        "SandboxUnavailable",
        "ServerState",
        "Session",
        "SessionClosed",
        "SessionLimits",
        "Settings",
        "SettingsArguments",
        "Skill",
        "SkillMissing",
        "SkillRefused",
        "Skills",
        "Source",
        "State",
        "Status",
        "Tool",
        "ToolCall",
        "ToolContext",
        "ToolFailed",
        "ToolUse",
        "UnknownToken",
        "Usage",
        "ValueKind",
        "Variable",
        "WrongLoop",
        "sync",
    ]


def test_the_names_that_are_loaded_and_those_that_are_checked_come_from_the_same_places() -> None:
    tree = ast.parse((TRUSTED / "__init__.py").read_text("utf-8"))
    checked = {
        name.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for name in node.names
    }
    assert checked.pop("sync") == "divingbell"  # a module, which is loaded as a whole
    assert checked == divingbell._HOMES
    assert all(getattr(divingbell, name) for name in divingbell.__all__)
    assert sorted([*checked, "sync"]) == divingbell.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        divingbell.nothing  # noqa: B018


def _loaded_by(code: str) -> set[str]:
    code = f"{code}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_it_loads_no_name_of_it_yet() -> None:
    loaded = _loaded_by("import divingbell") - _loaded_by("import importlib")
    assert loaded == {"divingbell"}, "not even typing, which takes 10 ms"


def test_importing_it_loads_nothing_heavy() -> None:
    heavy = {"rich", "prompt_toolkit", "cyclopts", "IPython", "numpy", "pandas", "docker", "mcp"}
    assert not heavy & _loaded_by("from divingbell import Divingbell")


def test_what_privacy_needs_is_not_loaded_without_it() -> None:
    code = (
        "import asyncio\nfrom divingbell import Divingbell\nasync def run():\n"
        "    async with Divingbell(pool=0, preload=[]) as bell: await bell.execute('1')\n"
        "asyncio.run(run())"
    )
    needed = {"hyperscan", "re2", "ahocorasick_rs", "phonenumbers", "stdnum", "cryptography"}
    assert not needed & _loaded_by(code)


def test_importing_the_package_loads_nothing_until_it_is_used() -> None:
    loaded = _loaded_by("import divingbell")
    assert {name for name in loaded if name.startswith("divingbell")} == {"divingbell"}
    assert "asyncio" not in loaded


def test_every_error_has_a_code_of_its_own() -> None:
    from divingbell import errors

    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes) >= 8


@pytest.mark.parametrize("version", [(3, 10, 14), (3, 14, 0), (4, 0, 0)], ids=repr)
def test_another_python_is_refused_by_name(version: tuple[int, ...]) -> None:
    code = f"import sys; sys.version_info = (*{version}, 'final', 0); import divingbell"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    said = f"Divingbell needs Python 3.11, 3.12 or 3.13, and this is {version[0]}.{version[1]}:"
    assert said in done.stderr.splitlines()[-1]


def test_what_is_refused_is_what_the_package_declares() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert declared["requires-python"] == ">=3.11,<3.14"
    named = {line for line in declared["classifiers"] if "Python :: 3." in line}
    assert named == {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
