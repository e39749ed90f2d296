"""Fixtures for all: one Divingbell for the whole run, a fresh session for each test."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell, Session


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
