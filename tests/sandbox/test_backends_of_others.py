"""A backend of somebody else's package: found, run and held to the promises like one of ours."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from divingbell import ConfigError, Divingbell
from divingbell.doctor import machine
from divingbell.promises.check.self_check import check, left_out, promised
from divingbell.sandbox import registry
from divingbell.settings.config import Settings

COMMAND = (sys.executable, "-m", "divingbell")
NAME = "tiny"
REASON = "a tiny backend makes no promise about this one"
ROW = f"""
from divingbell.sandbox.registry import Row

ROW = Row(
    name="{NAME}",
    made_by="tiny_backend.backend:TinyBackend",
    strength=150,
    works_without_cgroups=True,
    sessions_have_own_uids=False,
    findings=("tiny_backend.backend:look",),
    not_promised={{"K01": "{REASON}"}},
)
"""
BACKEND = """
from divingbell.host.finding import Finding
from divingbell.sandbox.local.backend import LocalBackend

class TinyBackend(LocalBackend):
    pass

def look(settings):
    return Finding("tiny tools", "warn", "none are there", "fetch some")
"""
CARELESS = """
from dataclasses import replace
from pathlib import Path
from divingbell.sandbox.local.backend import LocalBackend
from divingbell.sandbox.registry import Row

class CarelessBackend(LocalBackend):
    def __init__(self, request):
        shown = {"/Users": str(Path(__file__).with_name("homes"))}
        super().__init__(replace(request, settings=replace(request.settings, mounts=shown)))

ROW = Row(name="careless", made_by="tiny_backend.careless:CarelessBackend", strength=150)
"""
WORDS = """
from divingbell.sandbox.registry import Row

ROW = Row(name="ruined", made_by="tiny_backend.backend:TinyBackend", strength="9")
"""
KINDS = {"F01": "probe", "R03-single": "bomb", "R55": "host"}


def _distribution(folder: Path, package: str, entry_points: dict[str, str]) -> None:
    """Lay out an installed distribution, as pip leaves it."""
    information = folder / f"{package}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"[{registry.GROUP}]", *(f"{name} = {value}" for name, value in entry_points.items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that a package with a backend was installed into."""
    folder = tmp_path / "site-packages"
    (folder / "tiny_backend").mkdir(parents=True)
    (folder / "tiny_backend" / "__init__.py").write_text(ROW)
    (folder / "tiny_backend" / "backend.py").write_text(BACKEND)
    _distribution(folder, "tiny_backend", {NAME: "tiny_backend:ROW"})
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "tiny_backend"]:
        del sys.modules[name]


async def test_it_runs_sessions_and_is_held_to_promises_of_each_kind(installed: Path) -> None:
    async with Divingbell(NAME, pool=0, preload=()) as bell:
        async with bell.session() as session:
            assert session.isolation.backend == NAME
            assert (await session.run("6 * 7")).value == 42
        verdicts = [verdict async for verdict in check(bell, set(KINDS))]
    assert {each.promise.id: each.promise.kind for each in verdicts} == KINDS
    assert all(each.kept for each in verdicts), verdicts


async def test_one_that_shows_the_keys_of_the_host_is_found_out(installed: Path) -> None:
    keys = installed / "tiny_backend" / "homes" / "anna" / ".ssh"
    keys.mkdir(parents=True)
    (keys / "id_ed25519").write_text("a key")
    (installed / "tiny_backend" / "careless.py").write_text(CARELESS)
    _distribution(installed, "careless", {"careless": "tiny_backend.careless:ROW"})
    async with Divingbell("careless", pool=0, preload=()) as bell:
        verdicts = {verdict.promise.id: verdict async for verdict in check(bell, {"F01", "F02"})}
    assert verdicts["F01"].kept
    assert not verdicts["F02"].kept and "/Users/anna/.ssh" in verdicts["F02"].detail


def test_it_makes_all_promises_but_those_that_its_row_leaves_out(installed: Path) -> None:
    [(promise, reason)] = left_out(NAME, "cgroup v2")
    assert (promise.id, reason) == ("K01", REASON)
    assert "K01" not in {each.id for each in promised(NAME, "cgroup v2")}


def test_the_command_checks_it_by_its_name(installed: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "doctor", "--only", "F01", "--backend", NAME, "--json"],
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["in_force"]["backend"] == NAME
    assert [each["id"] for each in report["promises"] if each["kept"]] == ["F01"]
    assert {each["reason"] for each in report["not_promised"]} >= {REASON}
    [finding] = [each for each in report["findings"] if each["name"] == "tiny tools"]
    assert finding["state"] == "warn"


def test_doctor_looks_at_what_it_needs_only_where_it_is_chosen(installed: Path) -> None:
    def state(backend: str) -> list[str]:
        findings = machine.examine(Settings(backend=backend))
        return [each.state for each in findings if each.name == "tiny tools"]

    assert state(NAME) == state("auto") == ["warn"]
    assert state("local") == []


def test_it_takes_its_place_in_the_order_of_strength(installed: Path) -> None:
    tried = [row.name for row in registry.allowed(Settings(backend="auto"))]
    assert tried == ["gvisor", "docker-runsc", "local", NAME, "docker"]
    with pytest.raises(ConfigError, match=f"{NAME} is below the backend_minimum"):
        Divingbell(NAME, backend_minimum="local")
    assert Divingbell("local", backend_minimum=NAME)
    with pytest.raises(ConfigError, match=f"did you mean '{NAME}'"):
        Divingbell("tinny")


def test_it_can_not_take_a_name_of_ours(installed: Path) -> None:
    _distribution(installed, "thief", {"local": "tiny_backend:ROW", "auto": "tiny_backend:ROW"})
    assert registry.find("local") in registry.OURS
    assert sorted(row.name for row in registry.every()) == sorted(
        [NAME, *(row.name for row in registry.OURS)]
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no_such_module:ROW", "No module named 'no_such_module'"),
        ("tiny_backend:NOTHING", "AttributeError"),
        ("tiny_backend.backend:TinyBackend", r"is no divingbell\.sandbox\.registry\.Row"),
        ("tiny_backend:ROW", "is no .* of that name"),
        ("tiny_backend.ends:ROW", r"SystemExit: 3"),
        ("tiny_backend.words:ROW", r"TypeError: the row's strength must be int, not '9'"),
    ],
)
def test_one_that_can_not_be_loaded_says_so_and_whose_it_is(
    installed: Path, value: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    (installed / "tiny_backend" / "ends.py").write_text("raise SystemExit(3)")
    (installed / "tiny_backend" / "words.py").write_text(WORDS)
    _distribution(installed, "broken", {"ruined": value})
    with pytest.raises(ConfigError, match=f"package broken .*{words}.*uninstall that package"):
        Divingbell("ruined")
    # The others can still be used.
    assert NAME in [row.name for row in registry.every()]
    assert "ruined" in caplog.text


def test_a_name_that_two_packages_have_is_refused(installed: Path) -> None:
    _distribution(installed, "other", {NAME: "tiny_backend:ROW"})
    with pytest.raises(ConfigError, match=r"\(other, tiny_backend\): uninstall all but one"):
        Divingbell(NAME)
