"""The state of the Docker daemon, for `divingbell doctor`."""

import contextlib

from divingbell.errors import DivingbellError
from divingbell.host.finding import Finding
from divingbell.sandbox.docker import daemon
from divingbell.settings.config import Settings


def docker(settings: Settings | None = None) -> Finding:
    """Whether the daemon is there, allowed, and able to limit what a container uses."""
    try:
        with contextlib.closing(daemon.connect()) as client:
            info = daemon.check(client, daemon.RUNC)
    except daemon.NoDocker as error:
        return Finding("docker", "missing", error.detail, error.advice)
    except DivingbellError as error:
        return Finding("docker", "warn", str(error), "docker info")
    detail = f"daemon {info.get('ServerVersion')}, cgroup v{info.get('CgroupVersion') or 1}"
    if daemon.RUNSC in info.get("Runtimes", {}):
        return Finding("docker", "ok", f"{detail}, with runc and runsc")
    return Finding(
        "docker",
        "missing" if settings and settings.backend == "docker-runsc" else "ok",
        f"{detail}, with runc; gVisor's runsc is not among its runtimes",
        daemon.ADD_RUNSC,
    )
