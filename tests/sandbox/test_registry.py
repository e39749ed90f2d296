"""The registry: names are checked, nothing is loaded too early, and names stand nowhere else."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import ConfigError, Divingbell, SandboxUnavailable
from divingbell.promises import PROMISES
from divingbell.sandbox import registry
from divingbell.sandbox.base import BackendRequest
from divingbell.sandbox.docker import daemon
from divingbell.settings.config import Settings

SOURCE = Path(__file__).parents[2] / "src" / "divingbell"
NAMES = {row.name for row in registry.OURS}
MAY_NAME = {
    "sandbox/registry.py": NAMES | {daemon.RUNSC},
    "settings/config.py": {Settings().backend, Settings().backend_minimum},  # defaults
    "surfaces/auth.py": {"local"},  # the one user of a service without users
}
"""The files outside a backend's own room that hold its name, or a word that looks like it."""


def _names_of(rows: list[registry.Row]) -> list[str]:
    return [row.name for row in rows]


def test_all_are_tried_by_strength_unless_the_settings_give_an_order() -> None:
    every = ["gvisor", "docker-runsc", "local", "docker"]
    assert _names_of(registry.allowed(Settings())) == every
    assert _names_of(registry.allowed(Settings(backend_minimum="local"))) == every[:3]
    settings = Settings(backend_order=("docker", "local", "gvisor"), backend_minimum="local")
    assert _names_of(registry.allowed(settings)) == ["local", "gvisor"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"backend": "chroot"}, "backend: there is no backend 'chroot'. There are gvisor, docker"),
        ({"backend": "gvizor"}, "did you mean 'gvisor'?"),
        ({"backend": "docker-runc"}, "did you mean 'docker-runsc'?"),
        ({"backend_order": ["chroot"]}, "backend_order: there is no backend 'chroot'"),
        ({"backend_minimum": "chroot"}, "backend_minimum: there is no backend 'chroot'"),
        ({"backend_minimum": "auto"}, "backend_minimum: there is no backend 'auto'"),
        (
            {"backend": "docker", "backend_minimum": "local"},
            'docker is below the backend_minimum, "local"',
        ),
        (
            {"backend": "auto", "backend_order": ["docker", "local"], "backend_minimum": "gvisor"},
            "docker, local is below the backend_minimum",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_before_anything_starts(
    settings: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Divingbell(**settings)  # type: ignore[arg-type]
    assert words in str(caught.value)
    order = settings.pop("backend_order", [])
    with pytest.raises(ConfigError):
        Divingbell.of(Settings(**settings, backend_order=tuple(order)))  # type: ignore[arg-type]


def test_a_stronger_one_than_the_minimum_will_do() -> None:
    assert Divingbell(backend="docker-runsc", backend_minimum="local")


def test_commands_refuse_a_name_that_there_is_not_even_where_they_make_no_sandbox() -> None:
    for command in (["image", "list"], ["doctor"], ["exec", "1"]):
        done = subprocess.run(
            [sys.executable, "-m", "divingbell", *command, "--backend", "gvizor"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2, done
        assert "did you mean 'gvisor'?" in done.stderr


def test_nothing_of_a_backend_is_loaded_and_no_package_looked_at_before_it_is_needed() -> None:
    code = """
import sys
from divingbell.sandbox import registry
from divingbell.settings.config import Settings
before = set(sys.modules)
for row in registry.OURS:
    registry.check(Settings(backend=row.name, backend_minimum="docker"))
rooms = ("docker", *(f"divingbell.sandbox.{name}" for name in ("docker", "gvisor", "local")))
loaded = [name for name in sys.modules if name.startswith(rooms)]
looked = "importlib.metadata" in set(sys.modules) - before
print(loaded, looked)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "False"], done.stdout


def test_what_can_not_be_imported_says_what_to_install(tmp_path: Path) -> None:
    row = registry.Row(
        name="cloud", made_by="no_such_module:Backend", strength=1, requirement="cloud[sandbox]"
    )
    with pytest.raises(SandboxUnavailable, match=r'no_such_module.*pip install "cloud\[sandbox\]"'):
        registry.make(row, BackendRequest(name="cloud", settings=Settings()))


@pytest.mark.parametrize(
    "field",
    [
        {"strength": "9"},
        {"strength": True},
        {"slowness": 1.5},
        {"made_by": None},
        {"options": [("runtime", "x")]},
        {"findings": "module:attribute"},
        {"findings": (5,)},
        {"not_promised": None},
        {"works_without_cgroups": "no"},
    ],
    ids=str,
)
def test_a_row_with_a_field_of_another_type_is_refused(field: dict[str, object]) -> None:
    fields: dict[str, Any] = {"name": "cloud", "made_by": "cloud:Backend", "strength": 1, **field}
    [name] = field
    with pytest.raises(TypeError, match=f"the row's {name} must be"):
        registry.Row(**fields)


def test_a_module_that_ends_the_program_can_not_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_ends.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    row = registry.Row(name="cloud", made_by="module_that_ends:Backend", strength=1)
    with pytest.raises(SandboxUnavailable, match=r"SystemExit: 3.*reinstall the package"):
        registry.load(row, row.made_by)


def test_every_promise_says_of_each_of_ours_whether_it_is_kept() -> None:
    for promise in PROMISES:
        assert set(promise.backends) == NAMES, promise.id
    assert Settings().backend == registry.DEFAULT


def _literals(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_names_of_backends_stand_in_the_registry_and_in_their_own_rooms_only() -> None:
    words = NAMES | {daemon.RUNC, daemon.RUNSC}
    rooms = {row.made_by.partition(":")[0].split(".")[2] for row in registry.OURS}
    found = []
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(tuple(f"sandbox/{room}/" for room in rooms)):
            allowed = MAY_NAME.get(name, set())
            literals = [each for each in _literals(path) if each[1] in words - allowed]
            found += [f"{name}:{line}: {value!r}" for line, value in literals]
    assert not found, "\n".join(found)
