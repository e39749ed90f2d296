"""The Docker daemon of this machine: a client of it, or an error with the command that helps."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from divingbell.errors import SandboxUnavailable
from divingbell.host.beside import run
from divingbell.sandbox import registry

if TYPE_CHECKING:
    from docker import APIClient

ASK_TIMEOUT, TIMEOUT = 15, 60
"""Seconds that the daemon has for an answer about itself, and for any other."""
DEFAULT_HOST = "unix:///var/run/docker.sock"
RUNC, RUNSC = "runc", "runsc"
"""The runtimes that we use, by Docker's names for them; runsc is gVisor's."""
Outcome = TypeVar("Outcome")
ADD_RUNSC = (
    "sudo apt-get install runsc && sudo runsc install -- --network=none --host-uds=open "
    "&& sudo systemctl restart docker"
)


class NoDocker(SandboxUnavailable):
    """Docker can't be used here; `advice` is the command that changes that."""

    def __init__(self, detail: str, advice: str) -> None:
        super().__init__(f"{detail}: {advice}")
        self.detail = detail
        self.advice = advice


def connect() -> "APIClient":
    """Return a client of the daemon that `DOCKER_HOST` names, or of the usual one. Blocks.

    Raises:
        NoDocker: it can't be reached.
    """
    try:
        import docker
        from docker.errors import DockerException
        from docker.utils import kwargs_from_env
    except ImportError:
        raise NoDocker(
            "the Docker SDK for Python is missing", registry.find("docker").install_command
        ) from None
    _try_to_connect(os.environ.get("DOCKER_HOST") or DEFAULT_HOST)
    try:
        return docker.APIClient(
            version="auto", timeout=ASK_TIMEOUT, max_pool_size=32, **kwargs_from_env()
        )
    except DockerException as error:
        raise NoDocker(f"the Docker daemon does not answer ({error})", "docker info") from None


def _try_to_connect(where: str) -> None:
    """See whether a daemon is there at all: the SDK words it badly, and leaves a socket open."""
    kind, _, path = where.partition("://")
    if kind != "unix":
        raise NoDocker(
            f"DOCKER_HOST is {where}: sandboxes need a daemon on this machine", "unset DOCKER_HOST"
        )
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(ASK_TIMEOUT)
            line.connect(path)
    except FileNotFoundError:
        raise NoDocker(
            f"there is no Docker daemon at {where}",
            "sudo apt-get install docker.io && sudo systemctl start docker",
        ) from None
    except PermissionError:
        raise NoDocker(
            f"this user may not talk to the Docker daemon ({where})",
            'sudo usermod -aG docker "$USER", then log in again (whoever may is as good as root)',
        ) from None
    except ConnectionRefusedError:
        raise NoDocker(
            f"the Docker daemon at {where} does not run", "sudo systemctl start docker"
        ) from None
    except OSError as error:
        raise NoDocker(f"{where} does not answer ({error})", "docker info") from None


def check(client: "APIClient", runtime: str) -> dict[str, Any]:
    """Return what the daemon says about itself.

    Raises:
        NoDocker: it can't run our containers; the advice is the command to run.
    """
    with translated():
        info: dict[str, Any] = client.info()
    if info.get("OSType") != "linux":
        raise NoDocker("this Docker runs no Linux containers", "switch it to Linux containers")
    if runtime not in info.get("Runtimes", {}):
        raise NoDocker(
            f"Docker does not know the runtime {runtime}",
            ADD_RUNSC if runtime == RUNSC else "docker info",
        )
    lacking = [
        name
        for name, key in (("memory", "MemoryLimit"), ("pids", "PidsLimit"), ("cpu", "CpuCfsQuota"))
        if not info.get(key)
    ]
    if lacking:
        raise NoDocker(
            f"Docker can't limit {', '.join(lacking)} here: the kernel's control groups lack that",
            'add "cgroup_enable=memory swapaccount=1" to the kernel\'s command line, '
            "run `sudo update-grub`, and reboot",
        )
    return info


def counts_together(info: dict[str, Any]) -> bool:
    """Whether all containers have one user namespace, by userns-remap or a rootless daemon.

    What they use by user then counts against whoever made it, as well: root, or the user.
    """
    options = info.get("SecurityOptions") or ()
    return any(option.startswith(("name=userns", "name=rootless")) for option in options)


async def beside(work: Callable[[], Outcome]) -> Outcome:
    """Ask the daemon something, in a thread: one that is silent holds up neither us nor our end."""
    return await run(work, clear_up=0)


@contextmanager
def translated(doing: str = "") -> Iterator[None]:
    """Turn what the SDK raises into SandboxUnavailable."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException) as error:
        words = getattr(error, "explanation", None) or error
        raise SandboxUnavailable(f"Docker{doing and ', ' + doing}: {words}") from error
