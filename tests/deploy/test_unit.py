"""deploy/systemd: the unit is one, and has nothing in it that keeps sessions from being made."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell.host import descriptors
from divingbell.settings.config import Settings

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "divingbell.service"
HARMLESS = {"", "no", "false", "0", "off", "default", "all", "infinity"}
"""Values with which an option does nothing."""
BREAKING = {
    "RestrictNamespaces": "sessions are made in namespaces",
    "PrivateUsers": "sessions are made in user namespaces, whose owner must be known",
    "ProtectProc": "a session mounts a /proc of its own, which a masked one forbids",
    "ProcSubset": "a session mounts a /proc of its own, which a masked one forbids",
    "ProtectKernelTunables": "it masks parts of /proc",
    "ProtectKernelLogs": "it masks parts of /proc",
    "ProtectControlGroups": "sessions have control groups",
    "InaccessiblePaths": "a session binds the system's folders",
    "SystemCallFilter": "the sandbox needs mount, pivot_root, clone and more",
    "SystemCallArchitectures": "it is a filter of system calls",
    "RestrictFileSystems": "a session mounts tmpfs and proc",
    "LimitNPROC": "all sessions of an ordinary user count against one limit",
    "TasksMax": "all sessions count against one limit",
    "DynamicUser": "it implies options that hide parts of the system",
}


def options(text: str) -> dict[str, str]:
    """The options of a unit; a later one takes the place of an earlier."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition("=") for line in lines if "=" in line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def problems(text: str) -> list[str]:
    """Why sessions could not be made in a service with this unit."""
    given, found = options(text), list[str]()
    for name, reason in BREAKING.items():
        if given.get(name, "").lower() not in HARMLESS:
            found.append(f"{name}: {reason}")
    if given.get("Delegate") != "yes":
        found.append("Delegate: sessions need control groups of their own")
    usual = Settings()
    wanted = descriptors.needed(usual.max_sessions + usual.pool)
    if int(given.get("LimitNOFILE", "0")) < wanted:
        found.append(f"LimitNOFILE: the usual number of sessions needs {wanted}")
    return found


def test_the_unit_lets_sessions_be_made() -> None:
    assert problems(UNIT.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        *(f"{name}=yes" for name in BREAKING if name not in ("ProcSubset", "ProtectProc")),
        "ProcSubset=pid",
        "ProtectProc=invisible",
        "Delegate=no",
        "LimitNOFILE=1024",
    ],
)
def test_what_breaks_sessions_is_refused(line: str) -> None:
    [found] = problems(f"{UNIT.read_text()}\n[Service]\n{line}\n")
    assert found.startswith(line.partition("=")[0])


def test_systemd_takes_it(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.fail("systemd-analyze is not there: apt install systemd")
    command = Path(sys.executable).with_name("divingbell")
    text = UNIT.read_text().replace("/opt/divingbell/bin/divingbell", str(command))
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("User=divingbell", "User=root"))
    ran = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60
    )
    about_ours = [line for line in ran.stderr.splitlines() if UNIT.name in line]
    assert ran.returncode == 0 and not about_ours, ran.stderr


def test_without_new_privileges_code_still_runs() -> None:
    """As the unit has it."""
    command = Path(sys.executable).with_name("divingbell")
    ran = subprocess.run(
        ["setpriv", "--no-new-privs", str(command), "exec", "print(6 * 7)"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.stdout == "42\n", ran.stderr


# The steps that docs/deploying.md has


def _steps() -> list[str]:
    """The commands of the page, without those that take the machine itself."""
    page = (UNIT.parents[2] / "docs" / "deploying.md").read_text()
    [block] = re.findall(r"## With systemd\n.*?```sh\n(.*?)```", page, re.DOTALL)
    return block.splitlines()


def test_the_unit_and_the_page_have_the_same_steps() -> None:
    told = re.findall(r"^#   (.+?)(?:    \(.*\))?$", UNIT.read_text(), re.MULTILINE)
    assert told == _steps()[1:]  # the first one is for Debian


def test_the_steps_make_what_the_unit_names_and_its_command_starts(tmp_path: Path) -> None:
    """In a folder that takes the place of the machine's root; packages are this environment's."""
    checkout = UNIT.parents[2]
    for step in _steps():
        if step.startswith("install "):
            here = re.sub(r' -o "?divingbell"?', "", step)
            here = re.sub(r" (/etc/\S*)", rf" {tmp_path}\1", here)
            (tmp_path / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
            subprocess.run(["sh", "-ec", here], cwd=checkout, check=True, timeout=60)
    unit = (tmp_path / "etc/systemd/system/divingbell.service").read_text()
    given = options(unit)
    command = given["ExecStart"].replace("/etc/", f"{tmp_path}/etc/").split()
    assert command[0] == "/opt/divingbell/bin/divingbell"
    assert "python3 -m venv /opt/divingbell" in _steps()
    environment = tmp_path / given["EnvironmentFile"].lstrip("/")
    assert environment.stat().st_mode & 0o777 == 0o600
    pairs = dict(
        line.split("=", 1)
        for line in environment.read_text().splitlines()
        if line and not line.startswith("#")
    )
    pairs["DIVINGBELL_TOKENS"] = "anna " + "a" * 32
    own = Path(sys.executable).with_name("divingbell")
    process = subprocess.Popen(
        [own, *command[1:], "--port", "0"],
        env={**os.environ, **pairs, "XDG_DATA_HOME": str(tmp_path / "data")},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        said = ""
        while "listening at" not in said:
            line = process.stderr.readline()
            assert line, f"it has ended: {said}"
            said += line
        process.terminate()
        _, rest = process.communicate(timeout=120)
        assert process.returncode == 143, said + rest
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
