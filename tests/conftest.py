"""Fixtures for all: one Divingbell for the whole run, a fresh session for each test."""

import atexit
import os
import tempfile
from collections.abc import AsyncIterator

import hypothesis
import pytest

from divingbell import Divingbell, Session

# How busy the machine is decides nothing.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

# What tools and totals leave behind is not the business of whoever runs the tests.
_kept = tempfile.TemporaryDirectory(prefix="divingbell-tests-")
atexit.register(_kept.cleanup)
os.environ["XDG_DATA_HOME"] = _kept.name
for _variable in ("XDG_CONFIG_HOME", "DIVINGBELL_CONFIG", "DIVINGBELL_MCP_CONFIG"):
    os.environ.pop(_variable, None)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
async def bell() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=1, copy_after=0.05, interrupt_grace=0.5) as bell:
        yield bell


@pytest.fixture
async def session(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        yield session
