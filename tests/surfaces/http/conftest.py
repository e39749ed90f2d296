"""One server for many tests, and clients of two users."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from divingbell import Divingbell
from tests.surfaces.http.serving import ANNE, BERT, Site, served


@pytest.fixture(scope="module")
async def site(bell: Divingbell) -> AsyncIterator[Site]:
    async with served(bell) as site:
        yield site


@pytest.fixture
async def anne(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    async with site.client(ANNE) as client:
        yield client


@pytest.fixture
async def bert(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    async with site.client(BERT) as client:
        yield client
