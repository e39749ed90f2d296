import os
from pathlib import Path

import pytest

from divingbell.sandbox.gvisor import runsc


def _fake(folder: Path, monkeypatch: pytest.MonkeyPatch, flags: str) -> None:
    program = folder / "runsc"
    program.write_text(f"#!/bin/sh\necho 'runsc version release-1'\necho '{flags}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_missing_program_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(runsc.NoRunsc, match="no runsc") as caught:
        runsc.find()
    assert "apt-get install runsc" in caught.value.advice


@pytest.mark.skipif(os.geteuid() != 0, reason="runsc needs root")
@pytest.mark.parametrize(
    ("flags", "platform", "sockets"),
    [
        ("-host-uds -platform: systrap, kvm", "systrap", "--host-uds=open"),
        ("-fsgofer-host-uds -platform: ptrace, kvm", "ptrace", "--fsgofer-host-uds"),
    ],
)
def test_options_go_by_what_the_program_knows(
    flags: str, platform: str, sockets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(tmp_path, monkeypatch, flags)
    found = runsc.find()
    assert found.platform == platform and found.version == "release-1"
    assert sockets in found.options and "--network=none" in found.options


@pytest.mark.skipif(os.geteuid() != 0, reason="runsc needs root")
def test_one_that_reaches_no_socket_of_the_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(tmp_path, monkeypatch, "-platform: ptrace")
    with pytest.raises(runsc.NoRunsc, match="socket of the host"):
        runsc.find()


def test_a_platform_that_it_does_not_have_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake(tmp_path, monkeypatch, "-host-uds -platform: ptrace, kvm")
    with pytest.raises(runsc.NoRunsc, match="no platform systrap"):
        runsc.find("systrap")
