"""The types say what is so: examples pass two type checkers in strict mode, and mistakes do not.

mypy is among what `./dev` installs. pyright has an environment of its own, which is made when it is
first asked for (requirements/types.txt).
"""

import functools
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import real_servers

ROOT = Path(__file__).parents[1]
TYPING = Path(__file__).parent / "typing"
PATIENCE = 300.0
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

Found = dict[str, dict[int, str]]
"""By the name of a file and the number of its line: what a checker says of it."""


def _sources() -> dict[str, str]:
    """All that is checked: by its name, its text. Of the docs it is the whole programs: other
    blocks have names that nobody declares."""
    paths = [*TYPING.glob("*.py"), *(ROOT / "examples").glob("*.py")]
    programs = {
        f"{page.stem.lower()}_{number}.py": source
        for page in PAGES
        for number, source in enumerate(_PROGRAM.findall(page.read_text("utf-8")))
        if "asyncio.run(" in source or "sync.Divingbell(" in source
    }
    return {path.name: path.read_text("utf-8") for path in paths} | programs


def _mypy(folder: Path) -> Found:
    options = ["--strict", "--output=json", "--config-file="]
    done = _run([sys.executable, "-m", "mypy", *options, "."], folder)
    found: Found = defaultdict(dict)
    for line in done.stdout.splitlines():
        if (told := json.loads(line))["severity"] == "error":
            found[Path(told["file"]).name][told["line"]] = told["message"]
    return found


def _pyright(folder: Path) -> Found:
    python = real_servers.framework_python("types")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    options = ["--outputjson", "--project", str(folder), "--pythonpath", sys.executable]
    done = _run([python, "-m", "pyright", *options], folder)
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == len(_sources())
    found: Found = defaultdict(dict)
    for each in told["generalDiagnostics"]:
        if each["severity"] == "error":
            found[Path(each["file"]).name][each["range"]["start"]["line"] + 1] = each["message"]
    return found


def _run(command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr
    return done


CHECKERS: dict[str, Callable[[Path], Found]] = {"mypy": _mypy, "pyright": _pyright}


@functools.cache
def _found(checker: str) -> Found:
    """What a checker says of all that is checked: in one run, as it takes long."""
    with tempfile.TemporaryDirectory(prefix="divingbell-types-") as name:
        for file, source in _sources().items():
            Path(name, file).write_text(source, "utf-8")
        return CHECKERS[checker](Path(name))


@pytest.mark.parametrize("checker", CHECKERS)
def test_examples_and_programs_of_the_docs_are_typed_strictly(checker: str) -> None:
    assert {"right.py", "quickstart.py", "files.py", "readme_0.py"} <= _sources().keys()
    assert {name: said for name, said in _found(checker).items() if name != "wrong.py"} == {}


@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_are_found_in_the_lines_where_they_are(checker: str) -> None:
    lines = (TYPING / "wrong.py").read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    found = _found(checker)["wrong.py"]
    assert found.keys() == marked, found
