"""Profiles that are kept: listed, and removed where nobody has a use for them."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.host import holding, kept_profiles, profile
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import exit_status, profiles

DAY = 86_400


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path))
    return tmp_path / "profiles"


def lay(folder: Path, name: str, days: float = 0, *requirements: str) -> Path:
    """Lay a profile there that was last used so many days ago."""
    path = folder / name
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to(sys.executable)
    (path / "data").write_bytes(bytes(100_000))
    content = {
        "version": "3.11.7",
        "base_prefix": sys.base_prefix,
        "base_python": sys.executable,
        "packages": ["x==1"],
        "requirements": requirements,
    }
    (path / profile.MARKER).write_text(json.dumps(content))
    used = time.time() - days * DAY
    profile.lock_of(path).touch()
    os.utime(profile.lock_of(path), (used, used))
    return path


def current_name() -> str:
    key = profile._key(profile.DEFAULT_LOCK.read_bytes(), (), profile._interpreter_of(None))
    return f"{profile.DEFAULT_LOCK.stem}-{key}"


def test_they_are_listed_with_all_that_helps_to_choose(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay(folder, current_name())
    lay(folder, "default-1", 3, "polars>=1")
    assert profiles.show(Settings()) == exit_status.OK
    shown = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith(current_name()) and line.endswith("last used today  current")
        for line in shown
    )
    [other] = [line for line in shown if line.startswith("default-1")]
    assert other.endswith("Python 3.11.7  with polars>=1  last used 3 days ago")


def test_none_is_no_failure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert profiles.show(Settings()) == exit_status.OK
    assert profiles.prune(Settings(), days=0) == exit_status.OK
    assert "the first session prepares it" in capsys.readouterr().err


def test_those_that_were_not_used_for_long_are_removed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    current = lay(folder, current_name(), 400)
    recent, old = lay(folder, "default-1", 29), lay(folder, "default-2", 31)
    left = folder / ".default-3.building"
    left.mkdir()
    profiles.prune(Settings(), days=30)
    assert current.exists() and recent.exists()
    assert not old.exists() and not left.exists()
    said = capsys.readouterr()
    assert said.out.startswith(f"removed {old}  ")
    assert "default-1 was kept: last used 29 days ago (see --days)" in said.err
    profiles.prune(Settings(), days=0)
    assert current.exists() and not recent.exists()


def test_one_that_a_process_uses_is_never_removed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    used = lay(folder, "default-1", 400)
    code = (
        "import sys; from pathlib import Path; from divingbell.host import holding\n"
        f"print(holding.hold(Path({str(used)!r})), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        profiles.prune(Settings(), days=0)
        assert used.exists()
        assert "default-1 was kept: a Divingbell that runs uses it" in capsys.readouterr().err
        other.communicate()
    profiles.prune(Settings(), days=0)
    assert not used.exists()


def test_one_that_is_prepared_is_held_and_counts_as_used(folder: Path) -> None:
    path = lay(folder, current_name(), 400)
    before = {each: each.lstat().st_mtime_ns for each in path.rglob("*")}
    prepared = profile.prepare()
    assert prepared.path == path
    # Images are made of its files, and stale when one of them has changed.
    assert {each: each.lstat().st_mtime_ns for each in path.rglob("*")} == before
    [kept] = kept_profiles.all_kept(())
    assert kept.days_unused == 0
    assert kept.in_use()
    with pytest.raises(holding.InUse):
        kept_profiles.remove(kept, print)
    profile.release(prepared)


def test_one_that_is_held_twice_is_in_use_until_it_is_released_twice(folder: Path) -> None:
    lay(folder, current_name())
    first, second = profile.prepare(), profile.prepare()
    [kept] = kept_profiles.all_kept(())
    before = len(os.listdir("/proc/self/fd"))
    profile.release(first)
    assert kept.in_use()
    profile.release(second)
    assert not kept.in_use()
    assert len(os.listdir("/proc/self/fd")) == before - 2


async def test_a_divingbell_lets_go_of_its_profile_when_it_ends() -> None:
    def in_use() -> bool:
        [current] = [kept for kept in kept_profiles.all_kept(()) if kept.is_current]
        return holding.times(current.path) > before

    [current] = [kept for kept in kept_profiles.all_kept(()) if kept.is_current]
    before = holding.times(current.path)
    async with Divingbell(pool=0, preload=[]):
        assert in_use()
    assert not in_use()
