"""Walls that need something of the machine: what it is, and whether it is there."""

import os
from dataclasses import dataclass, field
from typing import Any

import pytest

from divingbell.sandbox import registry
from divingbell.settings.config import Settings


@dataclass(frozen=True)
class Wall:
    name: str
    settings: dict[str, Any] = field(default_factory=dict)


LOCAL, DOCKER, DOCKER_RUNSC, GVISOR = (
    Wall(row.name, {"backend": row.name}) for row in registry.OURS
)
CONTAINED = (DOCKER, DOCKER_RUNSC, GVISOR)


def lacking(wall: Wall) -> str:
    """Why this machine can't have it; empty if it can."""
    row = registry.find(wall.name)
    settings = Settings(backend=wall.name)
    findings = [registry.load(row, reference)(settings) for reference in row.findings]
    lacks = [f"{each.detail}: {each.advice}" for each in findings if each.state == "missing"]
    return "; ".join(lacks)


def need(wall: Wall) -> None:
    """Skip the test where the wall can't be had; in CI that is a failure."""
    if reason := lacking(wall):
        if os.environ.get("CI"):
            pytest.fail(f"{wall.name}: {reason}")
        pytest.skip(reason)
