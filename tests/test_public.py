"""The public names of each class are those that users are meant to touch, and no others."""

import inspect
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import mcp_types
import pytest

import divingbell
from divingbell import (
    Divingbell,
    Files,
    Limits,
    OpenFile,
    Result,
    Session,
    SessionLimits,
    Settings,
    SettingsArguments,
    events,
)
from divingbell.session.commands.handle import StartedHandle
from divingbell.settings import tables
from divingbell.settings.markers import IsPath

ROOT = Path(__file__).parents[1]

ATTRIBUTES: dict[type, set[str]] = {
    Divingbell: {
        "border",
        "close",
        "execute",
        "gateway",
        "get",
        "is_ready",
        "journal",
        "metrics",
        "ledgers",
        "of",
        "open",
        "open_behind",
        "owned",
        "ready",
        "release",
        "remove_tool",
        "review",
        "session",
        "sessions",
        "settings",
        "skills",
        "start",
        "starting",
        "tool",
    },
    Session: {
        "alive",
        "busy",
        "cells",
        "consumption",
        "expires_at",
        "opened_at",
        "close",
        "closed",
        "command",
        "command_stream",
        "commands",
        "complete",
        "reveal",
        "copied_cell",
        "copy_refused",
        "files",
        "get",
        "id",
        "interrupt",
        "isolation",
        "key",
        "labels",
        "last_used",
        "limits",
        "principal",
        "reset",
        "run",
        "set",
        "stream",
        "touch",
        "user",
        "variables",
    },
    Files: {"get", "list", "open", "put", "remove", "stat", "stream"},
    OpenFile: {"aclose", "info"},
    StartedHandle: {
        "command",
        "exit_code",
        "kill",
        "number",
        "pid",
        "running",
        "stderr",
        "stdout",
        "stream",
        "wait",
    },
    Result: {
        "calls",
        "cell",
        "error",
        "ledger",
        "limit",
        "notes",
        "outputs",
        "state",
        "state_cell",
        "status",
        "text",
        "to_dict",
        "to_json",
        "usage",
        "value",
        "value_kind",
    },
}
INNER = {
    # Tables in the settings and rows of them, which are given as dictionaries.
    *("Binding", "Flow", "PrivacyRules", "ReviewSettings", "Rule", "Server"),
    *("UnusableServer", "VaultSettings", "AuditLogSettings", "AgentSettings"),
    *("ExperimentSettings", "ServiceSettings"),
    # For those who write a way in of their own, and for the commands.
    *("LedgerRecorder", "Needs", "OwnedSessions", "ToolGateway"),
    # A protocol that open files have anyway.
    "Readable",
}
"""Classes that stand in public signatures, and need not be named by users."""


async def test_each_class_has_the_names_that_are_meant(session: Session, bell: Divingbell) -> None:
    await session.files.put("file", b"x")
    result = await session.run("1")
    command = await session.command("true", background=True)
    async with await session.files.open("file") as file:
        for made in (bell, session, session.files, file, command, result):
            public = {name for name in dir(made) if not name.startswith("_")}
            assert public == ATTRIBUTES[type(made)]


def _named(annotation: Any) -> Iterator[type]:
    """The classes of ours in an annotation."""
    if isinstance(annotation, type) and annotation.__module__.startswith("divingbell."):
        yield annotation
    for inner in get_args(annotation):
        for each in inner if isinstance(inner, list) else [inner]:
            yield from _named(each)


def _annotations(public: Any) -> Iterator[Any]:
    if not inspect.isclass(public):
        yield public
        return
    names = {**vars(mcp_types), "Result": Result}
    yield from get_type_hints(public, localns=names).values()
    for name in ATTRIBUTES.get(public, ()):
        part = inspect.getattr_static(public, name, None)
        part = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
        if inspect.isfunction(part):
            yield from get_type_hints(inspect.unwrap(part), localns=names).values()


def test_the_types_of_public_signatures_are_public() -> None:
    parts = [getattr(divingbell, name) for name in divingbell.__all__]
    named = {
        kind.__name__ for part in parts for each in _annotations(part) for kind in _named(each)
    }
    assert named - {*divingbell.__all__, *events.__all__} == INNER


def test_a_prompt_completes_the_public_names_before_anything_is_loaded() -> None:
    code = "import divingbell; print(*dir(divingbell))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(divingbell.__all__) <= set(done.stdout.split())


# The settings by name


def _accepted(annotation: Any) -> Any:
    """What an argument may be where a setting has this type."""
    base, *markers = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
    if any(isinstance(marker, IsPath) for marker in markers):
        return str | Path
    if any(getattr(marker, "__name__", "") == "parse_size" for marker in markers):
        return int | str
    if get_origin(base) is tuple:
        return list[str] | tuple[str, ...]
    if get_origin(base) is Mapping:
        return Mapping[str, _accepted(get_args(base)[1])]  # type: ignore[misc]
    return base


_TABLES: dict[str, Any] = {
    "limits": Limits | SessionLimits,
    "servers": Mapping[str, Any],
    "policy": divingbell.Policy | Mapping[str, Any],
    "privacy_rules": Mapping[str, Any],
    "vault": Mapping[str, Any],
    "agent": Mapping[str, Any],
    "experiment": Mapping[str, Any],
    "service": Mapping[str, Any],
    "audit_log": Mapping[str, Any],
    "review": Mapping[str, Any],
}


@pytest.mark.parametrize(
    ("given", "kinds", "apart"),
    [(SettingsArguments, (Limits, Settings), {"backend"}), (SessionLimits, (Limits,), set[str]())],
)
def test_the_arguments_are_the_settings(given: Any, kinds: tuple[type, ...], apart: Any) -> None:
    expected: dict[str, Any] = {}
    for kind in kinds:
        hints = get_type_hints(kind, include_extras=True)
        expected |= {name: _accepted(hints[name]) for name in tables.names(kind)}
    for name in apart:
        del expected[name]
    if Settings in kinds:
        expected |= _TABLES
    assert get_type_hints(given) == expected
    assert given.__required_keys__ == frozenset()


# The wheel


def test_the_wheel_says_that_it_is_typed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    assert {"divingbell/py.typed", "divingbell_inside/py.typed"} <= set(
        zipfile.ZipFile(wheel).namelist()
    )
