"""A service in this process, and the client of one of its users."""

from collections.abc import AsyncIterator

import pytest

from divingbell import client
from divingbell.app import Divingbell
from tests.surfaces.http.serving import ANNE, Site, served


@pytest.fixture(scope="module")
async def site(bell: Divingbell) -> AsyncIterator[Site]:
    async with served(bell) as site:
        yield site


@pytest.fixture
async def service(site: Site) -> AsyncIterator[client.Divingbell]:
    async with client.Divingbell(site.url, ANNE) as service:
        yield service
