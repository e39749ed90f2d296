"""The docs are true: examples run, commands exist, tables and map agree with the code.

A ```python block is a whole program if it calls `asyncio.run` or makes a `sync.Divingbell`, and
runs in a process of its own. Any other runs with `Divingbell`, `asyncio`, `bell` and `session` at
hand, where `await` is allowed. What a block prints must be its lines that start with `# →`. A
```console block runs where it shows output: each line that it shows must come, in order, and `…`
stands for what is left out.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import skills_ref

import divingbell
from divingbell import (
    CommandEvent,
    CommandHandle,
    CommandOptions,
    CommandResult,
    Divingbell,
    Ledger,
    Session,
    Settings,
    errors,
)
from divingbell.models import (
    Completion,
    Event,
    Failure,
    FileInfo,
    Isolation,
    Limits,
    Output,
    Result,
    ToolCall,
    ToolUse,
    Usage,
    Variable,
)
from divingbell.principal import Principal
from divingbell.session.files import Files
from divingbell.settings import config, tables
from divingbell.settings.agent import AgentSettings
from divingbell.settings.audit import AuditLogSettings
from divingbell.settings.experiment import ExperimentSettings
from divingbell.settings.privacy import PrivacyRules
from divingbell.settings.vault import VaultSettings
from divingbell.surfaces.cli import exit_status
from tests import libraries

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
COMMAND = Path(sys.executable).with_name("divingbell")
PATIENCE = 120.0
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARKED = re.compile(r"<!-- promises:begin -->.*?<!-- promises:end -->", re.DOTALL)
_LIBRARY = re.compile(r"^import (numpy|pandas|polars)$", re.MULTILINE)
_SIZES = {"memory", "disk", "output"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def _text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def _blocks(kind: str) -> list[Block]:
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for page in PAGES
        for text in [page.read_text("utf-8")]
        for found in _FENCE.finditer(text)
        if found[1] == kind
    ]


def _environment() -> dict[str, str]:
    """Ours, without the settings of whoever runs the tests."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "DIVINGBELL_HOME" or not name.startswith("DIVINGBELL_")
    }
    path = f"{COMMAND.parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "COLUMNS": "100"}


# Examples


def _expected(source: str) -> list[str]:
    return [found.rstrip() for found in re.findall(r"^\s*# → ?(.*)$", source, re.MULTILINE)]


@pytest.mark.parametrize("block", _blocks("python"), ids=str)
async def test_examples_run_and_print_what_they_say(
    block: Block, bell: Divingbell, session: Session, tmp_path: Path, monkeypatch: Any
) -> None:
    for name in _LIBRARY.findall(block.text):
        libraries.need(name)
    if "asyncio.run(" in block.text or "sync.Divingbell(" in block.text:
        printed = await asyncio.to_thread(_run_program, block.text, tmp_path)
    else:
        monkeypatch.chdir(tmp_path)
        printed = await _run_inside(block, bell, session)
    assert [line.rstrip() for line in printed.splitlines()] == _expected(block.text)


def _run_program(source: str, folder: Path) -> str:
    (folder / "program.py").write_text(source)
    (folder / "examples").symlink_to(ROOT / "examples")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _run_inside(block: Block, bell: Divingbell, session: Session) -> str:
    names = {"Divingbell": Divingbell, "asyncio": asyncio, "bell": bell, "session": session}
    code = compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        running = eval(code, names)
        if inspect.iscoroutine(running):
            async with asyncio.timeout(PATIENCE):
                await running
    return printed.getvalue()


@pytest.mark.parametrize("block", _blocks("toml"), ids=str)
def test_settings_files_can_be_read(block: Block, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "divingbell.toml").write_text(block.text)
    assert config.load(tmp_path / "divingbell.toml", environment={}) != Settings()


# Commands


def _sessions_of(block: Block) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it shows."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line.removeprefix("$ "), []
        elif line.strip(" …"):
            shown.append(line)
    if command:
        yield command, shown


def _pattern(line: str) -> re.Pattern[str]:
    """Spaces may differ, and so may what `…` stands for."""
    pieces = (r"\s+".join(map(re.escape, piece.split())) for piece in line.split("…"))
    return re.compile(r".*".join(pieces))


@pytest.mark.parametrize("block", _blocks("console"), ids=str)
def test_what_consoles_show_comes(block: Block, tmp_path: Path) -> None:
    for command, shown in _sessions_of(block):
        done = subprocess.run(
            ["bash", "-c", _without_setup(command)],
            cwd=tmp_path,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        came = iter(" ".join(line.split()) for line in done.stdout.splitlines())
        for line in shown:
            wanted = _pattern(line)
            assert any(wanted.fullmatch(got) for got in came), f"{line!r} of\n{done.stdout}"
    skills = [path.parent for path in tmp_path.rglob("SKILL.md")]
    assert skills or "skills publish" not in block.text
    assert [skills_ref.validate(folder) for folder in skills] == [[]] * len(skills)


def _without_setup(command: str) -> str:
    """These tests run in an environment that is set up: `./dev demo` is `divingbell demo`."""
    words = command.split()
    if words[0] == "./dev" and words[1] in ("demo", "run"):
        return command.replace("./dev run", "divingbell").replace("./dev", "divingbell")
    return command.replace("./dev", shlex.quote(str(ROOT / "dev")))


def _commands() -> set[str]:
    """Every command of ours that the docs name, in code spans, sh blocks and consoles."""
    found = set()
    for page in PAGES:
        text = page.read_text("utf-8")
        spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", _FENCE.sub("", text))
        lines = [
            line
            for kind, block in _FENCE.findall(text)
            if kind == "sh"
            for line in block.splitlines()
        ]
        consoles = [
            line[2:]
            for kind, block in _FENCE.findall(text)
            if kind == "console"
            for line in block.splitlines()
            if line.startswith("$ ")
        ]
        for line in (*spans, *lines, *consoles):
            command = re.search(
                r"(?:^|\s)((?:\./dev|divingbell|bell)(?:\s+[^#]*)?)$", line.split("  #")[0]
            )
            if command and not line.startswith(("import", "from", "keyring")):
                found.add(command[1].strip())
    return found


@cache
def _help(*command: str) -> str:
    done = subprocess.run(
        [*command, "--help"], cwd=ROOT, env=_environment(), capture_output=True, text=True
    )
    return done.stdout


def _is_known(command: str) -> bool:
    words = shlex.split(command)
    if words[0] == "./dev":
        if len(words) == 1:
            return True
        if words[1] != "run":
            return (
                re.search(rf"^  {re.escape(words[1])}\b", _help("./dev"), re.MULTILINE) is not None
            )
        words = words[1:]
    if len(words) == 1 or words[1].startswith("-"):
        return len(words) == 1 or words[1] in _help(str(COMMAND))
    if re.search(rf"^ *│? *{re.escape(words[1])}\s", _help(str(COMMAND)), re.MULTILINE) is None:
        return False
    options = [word.split("=")[0] for word in words[2:] if re.match(r"--?[a-z]", word)]
    known = _help(str(COMMAND)) + _help(str(COMMAND), words[1])
    if (
        words[1] in ("audit", "datasets", "image", "policy", "profile", "skills", "token", "vault")
        and len(words) > 2
        and not words[2].startswith("-")
    ):  # those with commands below them
        if re.search(rf"│ {re.escape(words[2])}\s", known) is None:
            return False
        known += _help(str(COMMAND), *words[1:3])
    return all(re.search(rf"{option}\b", known) for option in options)


@pytest.mark.parametrize("command", sorted(_commands()))
def test_commands_and_options_that_are_named_exist(command: str) -> None:
    assert _is_known(command)


# Tables


def _rows(page: str, *header: str) -> list[list[str]]:
    """The cells of the tables of a page whose header is this."""
    top = "| " + " | ".join(header) + " |"
    rows, inside = list[list[str]](), False
    for line in _text(page).splitlines():
        if line == top:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    assert rows, f"{page} has no table {top}"
    return rows


def _docstrings(kind: type) -> dict[str, str]:
    """What stands below each field of a dataclass."""
    [tree] = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr):
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = inspect.cleandoc(ast.literal_eval(below.value))
    return found


def _default(name: str, value: Any) -> str:
    if name in _SIZES:
        return f'`"{value >> 20}MB"`'
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{json.dumps(value)}`"


def _expected_rows(kind: type[Limits] | type[Settings]) -> list[list[str]]:
    made, meanings = kind(), _docstrings(kind)
    names = tables.names(kind, as_text=True)  # the others are tables, with pages of their own
    return [
        [
            f"`{name}`",
            _default(name, getattr(made, name)),
            f"`{config.PREFIX}{name.upper()}`",
            " ".join(meanings[name].split()),
        ]
        for name in names
    ]


def test_the_tables_of_settings_are_those_of_the_code() -> None:
    shown = _rows("docs/configuration.md", "name", "default", "environment", "meaning")
    assert shown == _expected_rows(Limits) + _expected_rows(Settings)


def test_the_defaults_in_the_tables_make_the_default_settings(tmp_path: Path) -> None:
    shown = _rows("docs/configuration.md", "name", "default", "environment", "meaning")
    path = tmp_path / "divingbell.toml"
    lines = (f"{row[0]} = {row[1]}\n".replace("`", "") for row in shown if row[1] != "–")
    path.write_text("".join(lines))
    assert config.load(path, environment={}) == Settings()


@pytest.mark.parametrize("kind", [PrivacyRules, VaultSettings])
def test_the_tables_of_privacy_are_those_of_the_code(kind: type) -> None:
    shown = _rows("docs/privacy.md", "name", "default", "meaning")
    for name in tables.names(kind):
        default = _default(name, getattr(kind(), name))
        assert [f"`{name}`", default, " ".join(_docstrings(kind)[name].split())] in shown


def test_the_table_of_the_audit_log_is_that_of_the_code() -> None:
    shown = _rows("docs/audit.md", "name", "default", "meaning")
    meanings = _docstrings(AuditLogSettings)
    assert shown == [
        [f"`{name}`", _default(name, getattr(AuditLogSettings(), name)), " ".join(words.split())]
        for name, words in meanings.items()
    ]


def test_the_limits_in_the_readme_are_those_of_the_code() -> None:
    shown = _rows("README.md", "limit", "default", "what it bounds")
    assert [row[:2] for row in shown] == [row[:2] for row in _expected_rows(Limits)]


def test_the_exit_statuses_in_the_readme_are_those_of_the_code() -> None:
    shown = _rows("README.md", "exit status", "meaning")
    assert {int(number): meaning for number, meaning in shown} == exit_status.MEANINGS


def test_the_table_of_errors_is_the_tree_of_errors() -> None:
    root = errors.DivingbellError
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    assert all(issubclass(kind, root) for kind in kinds)
    shown = _rows("docs/library.md", "error", "`code`", "when")
    expected = [[f"`{kind.__name__}`", f"`{kind.code}`"] for kind in kinds]
    assert sorted(row[:2] for row in shown) == sorted(expected)


def test_the_reference_names_everything_that_is_public() -> None:
    page = _text("docs/library.md")
    missing = [name for name in divingbell.__all__ if f"`{name}" not in page]
    for kind in (
        CommandEvent,
        CommandResult,
        Completion,
        Event,
        Failure,
        FileInfo,
        Isolation,
        Ledger,
        Output,
        Principal,
        Result,
        ToolCall,
        ToolUse,
        Usage,
        Variable,
    ):
        missing += [item.name for item in fields(kind) if f"`{item.name}`" not in page]
    missing += [name for name in CommandOptions.__annotations__ if f"`{name}`" not in page]
    parts = {
        "bell": Divingbell,
        "session": Session,
        "session.files": Files,
        "command": CommandHandle,
    }
    for word, part in parts.items():
        names = [name for name in vars(part) if not name.startswith("_")]
        missing += [f"{word}.{name}" for name in names if f"{word}.{name}" not in page]
    assert not missing


# Links, paths, the map


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", page.read_text("utf-8"))):
        if not target.startswith(("https://", "http://", "mailto:")):
            name, _, anchor = target.partition("#")
            found = page.parent / name if name else page
            assert found.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in _anchors(found), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_tells_of_the_machine_it_was_written_on(page: Path) -> None:
    text = _MARKED.sub("", page.read_text("utf-8"))
    for path in (str(ROOT), f"{Path.home()}/"):
        assert path not in text
    assert not re.findall(r"/(?:home|Users)/(?!diver\b)\w+|(?<!\w)/(?:work|root)/", text)


def test_the_readme_starts_with_the_two_commands_and_keeps_room_for_figures() -> None:
    text = _text("README.md")
    first_screen = "\n".join(text.splitlines()[:50])
    assert "./dev demo" in first_screen and "./dev test" in first_screen
    assert text.index("<!-- figures:begin -->") < text.index("<!-- figures:end -->")


def test_the_changelog_has_the_version_of_the_package() -> None:
    [version] = re.findall(r'^version = "(.*)"$', _text("pyproject.toml"), re.MULTILINE)
    assert f"## [{version}]" in _text("CHANGELOG.md")


def test_bash_is_there_for_consoles() -> None:
    assert shutil.which("bash")


@pytest.mark.parametrize("kind", [AgentSettings, ExperimentSettings])
def test_the_tables_of_agents_are_those_of_the_code(kind: type) -> None:
    shown = _rows("docs/agents.md", "name", "default", "meaning")
    for row in _table_rows(kind):
        assert row in shown


def _table_rows(kind: type) -> list[list[str]]:
    meanings = _docstrings(kind)
    return [
        [f"`{name}`", _default(name, getattr(kind(), name)), " ".join(meanings[name].split())]
        for name in tables.names(kind)
    ]
