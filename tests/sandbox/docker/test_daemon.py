import os
import socket
from pathlib import Path
from typing import Any

import pytest

from divingbell.sandbox.docker import daemon


class Client:
    """A daemon's answers; no test that claims that Docker works uses it."""

    def __init__(self, **info: Any) -> None:
        self._info = {
            "OSType": "linux", "Runtimes": {"runc": {}}, "MemoryLimit": True, "PidsLimit": True,
            "CpuCfsQuota": True, **info,
        }  # fmt: skip

    def info(self) -> dict[str, Any]:
        return self._info


def test_a_missing_daemon_is_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(daemon.NoDocker, match="there is no Docker daemon") as caught:
        daemon.connect()
    assert "apt-get install docker.io" in caught.value.advice


def test_a_daemon_that_has_ended_is_recognised(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as left_over:
        left_over.bind(str(tmp_path / "docker.sock"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    with pytest.raises(daemon.NoDocker, match="does not run") as caught:
        daemon.connect()
    assert caught.value.advice == "sudo systemctl start docker"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_missing_permission_is_recognised(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen()
        for folder in (tmp_path, *tmp_path.parents[:3]):
            if folder != Path("/tmp"):
                folder.chmod(0o755)
        code = (
            "import os\n"
            "from divingbell.sandbox.docker import daemon\n"
            "import docker\n"
            "os.setresuid(65534, 65534, 65534)\n"
            "try: daemon.connect()\n"
            "except daemon.NoDocker as error: print(error)\n"
        )
        answer = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "DOCKER_HOST": f"unix://{path}"},
            capture_output=True,
            text=True,
        )
    assert "may not talk to the Docker daemon" in answer.stdout, answer.stderr
    assert "usermod -aG docker" in answer.stdout


def test_a_daemon_of_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    with pytest.raises(daemon.NoDocker, match="on this machine"):
        daemon.connect()


def test_a_missing_runtime_is_recognised() -> None:
    with pytest.raises(daemon.NoDocker, match="does not know the runtime runsc") as caught:
        daemon.check(Client(), "runsc")  # type: ignore[arg-type]
    assert "runsc install" in caught.value.advice


def test_cgroup_trouble_is_recognised() -> None:
    with pytest.raises(daemon.NoDocker, match="can't limit memory, pids") as caught:
        daemon.check(Client(MemoryLimit=False, PidsLimit=False), "runc")  # type: ignore[arg-type]
    assert "cgroup_enable=memory" in caught.value.advice


def test_a_daemon_that_counts_all_containers_together_is_known() -> None:
    plain = ["name=seccomp,profile=builtin", "name=cgroupns"]
    assert not daemon.counts_together({"SecurityOptions": plain})
    assert not daemon.counts_together({"SecurityOptions": None})
    for option in ("name=userns", "name=rootless"):
        assert daemon.counts_together({"SecurityOptions": [*plain, option]})
