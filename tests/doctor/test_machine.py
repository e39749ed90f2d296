"""What the machine can do, and what is said about what it can't."""

import io
import json
import platform
import shutil
import sys
from pathlib import Path

import pytest

from divingbell.doctor import machine
from divingbell.host import cgroups, kernel, profile
from divingbell.host.finding import Finding
from divingbell.sandbox.contained import findings as of_containers
from divingbell.sandbox.contained import root
from divingbell.sandbox.docker import daemon
from divingbell.sandbox.docker import findings as of_docker
from divingbell.sandbox.gvisor import findings as of_gvisor
from divingbell.sandbox.gvisor import runsc
from divingbell.settings.config import Settings


def _by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_everything_is_looked_at_and_every_lack_has_advice() -> None:
    findings = machine.examine()
    assert set(_by_name(findings)) == {
        "system", "python", "kernel", "user namespaces", "proc", "seccomp", "landlock", "cgroups",
        "docker", "gvisor", "uv", "profile", "image", "restore",
    }  # fmt: skip
    for finding in findings:
        assert finding.detail
        assert finding.state == "ok" or finding.advice, finding


def test_looking_leaves_no_control_group_behind() -> None:
    machine.examine()
    for point in set(cgroups._mounts().values()):
        assert not list(point.glob(f"**/{cgroups.own_name()}"))


def test_another_system_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    names = _by_name(machine.examine())
    assert names["system"].blocking and "Linux" in names["system"].detail
    assert "kernel" not in names
    assert "Linux" in (kernel.why_not() or "")


def test_control_groups_that_are_off_or_missing_say_what_is_in_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    off = machine._cgroups(Settings(cgroups="off"))
    assert off.state == "warn" and "rlimits" in off.detail

    def none() -> cgroups.Hierarchy:
        raise cgroups.NoCgroups("no cgroup file system is mounted")

    monkeypatch.setattr(cgroups, "find", none)
    missing = machine._cgroups(None)
    assert missing.state == "warn" and "each process" in missing.detail and missing.advice


def test_gvisor_without_control_groups_is_missing_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(_: str) -> runsc.Runsc:
        return runsc.Runsc("/usr/bin/runsc", "1", "ptrace", ())

    def none() -> cgroups.Hierarchy:
        raise cgroups.NoCgroups("no cgroup file system is mounted")

    monkeypatch.setattr(runsc, "find", found)
    monkeypatch.setattr(cgroups, "find", none)
    finding = of_gvisor.runsc(None)
    assert finding.state == "missing" and "no cgroup file system" in finding.detail
    assert "Delegate=yes" in finding.advice


def test_a_runtime_that_docker_lacks_is_missing_only_where_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(daemon, "connect", lambda: io.BytesIO())
    monkeypatch.setattr(daemon, "check", lambda client, runtime: {"Runtimes": {"runc": {}}})
    assert of_docker.docker(Settings(backend="docker")).state == "ok"
    finding = of_docker.docker(Settings(backend="docker-runsc"))
    assert finding.state == "missing" and "runsc install" in finding.advice


def test_images_that_are_stale_come_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = root.Root(Path("/old"), "old"), root.Root(Path("/new"), "new")
    there: list[tuple[root.Root, root.State]] = [(old, "stale")]
    monkeypatch.setattr(root, "listed", lambda prepared: there)
    monkeypatch.setattr(root, "find", lambda prepared: None)
    finding = of_containers.image(Settings())
    assert "stale" in finding.detail and finding.advice == "divingbell image build"
    there.append((new, "current"))
    monkeypatch.setattr(of_containers.profile, "find", lambda packages: object())
    monkeypatch.setattr(root, "find", lambda prepared: new)
    finding = of_containers.image(Settings())
    assert finding.state == "ok" and finding.advice == "divingbell image prune"
    there.remove((old, "stale"))
    assert not of_containers.image(Settings()).advice


def test_a_daemon_that_is_not_there_comes_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    finding = of_docker.docker()
    assert finding.state == "missing" and "apt-get install docker.io" in finding.advice


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        (Settings(), "unused"),
        (Settings(backend="gvisor"), "unused"),
        (Settings(backend="docker"), "missing"),
        (Settings(backend="auto"), "missing"),
    ],
    ids=lambda value: getattr(value, "backend", value),
)
def test_what_the_chosen_walls_do_without_is_no_fault(
    settings: Settings, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    [finding] = [each for each in machine.examine(settings) if each.name == "docker"]
    assert finding.state == state


def test_the_profile_that_is_looked_at_is_the_one_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> Finding:
        [finding] = [each for each in machine.examine(Settings()) if each.name == "profile"]
        return finding

    monkeypatch.setenv("DIVINGBELL_HOME", str(tmp_path))
    assert found().state == "warn" and "not prepared yet" in found().detail
    # Of this Python and with more packages: good for others, and not the one that is used here.
    other = tmp_path / "profiles" / "default-0123456789abcdef"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python").symlink_to(sys.executable)
    content = {
        "version": platform.python_version(),
        "base_prefix": sys.base_prefix,
        "base_python": sys.executable,
        "packages": ["pandas==3.0"],
    }
    (other / profile.MARKER).write_text(json.dumps(content))
    assert found().state == "warn" and "not prepared yet" in found().detail
    current = other.with_name(_name_of_current())
    shutil.copytree(other, current, symlinks=True)
    assert found().detail == f"prepared in {current}; others that take up space: 1"


def _name_of_current() -> str:
    key = profile._key(profile.DEFAULT_LOCK.read_bytes(), (), profile._interpreter_of(None))
    return f"{profile.DEFAULT_LOCK.stem}-{key}"
