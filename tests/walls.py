"""Walls that need something of the machine: what it is, and whether it is there."""

import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from divingbell.errors import SandboxUnavailable
from divingbell.sandbox.docker import daemon
from divingbell.sandbox.gvisor import runsc


@dataclass(frozen=True)
class Wall:
    name: str
    settings: dict[str, Any] = field(default_factory=dict)


LOCAL = Wall("local", {"backend": "local"})
DOCKER = Wall("docker", {"backend": "docker"})
DOCKER_RUNSC = Wall("docker-runsc", {"backend": "docker", "runtime": "runsc"})
GVISOR = Wall("gvisor", {"backend": "gvisor"})
CONTAINED = (DOCKER, DOCKER_RUNSC, GVISOR)


def lacking(wall: Wall) -> str:
    """Why this machine can't have it; empty if it can."""
    try:
        if wall.name == "gvisor":
            runsc.find()
        elif wall.name.startswith("docker"):
            client = daemon.connect()
            try:
                daemon.check(client, wall.settings.get("runtime", "runc"))
            finally:
                client.close()
    except SandboxUnavailable as error:
        return str(error)
    return ""


def need(wall: Wall) -> None:
    """Skip the test where the wall can't be had; in CI that is a failure."""
    if reason := lacking(wall):
        if os.environ.get("CI"):
            pytest.fail(f"{wall.name}: {reason}")
        pytest.skip(reason)
