"""One server and one browser for all tests of the console."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell
from tests import real_servers
from tests.surfaces.http.console.browsing import Console, launched, playwright_here
from tests.surfaces.http.serving import Site, served


@pytest.fixture(scope="package")
async def site(bell: Divingbell) -> AsyncIterator[Site]:
    async with served(bell) as site:
        yield site


@pytest.fixture
async def stranger(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without a token."""
    async with site.client(None) as client:
        yield client


@pytest.fixture(scope="package")
async def playwright() -> AsyncIterator[Any]:
    async with playwright_here() as playwright:
        yield playwright


@pytest.fixture(scope="package")
async def browser(playwright: Any) -> AsyncIterator[Any]:
    browser = await launched(playwright)
    yield browser
    await browser.close()


@pytest.fixture
async def console(site: Site, browser: Any) -> AsyncIterator[Console]:
    """The page, signed in, in a window of its own."""
    context = await browser.new_context(viewport={"width": 1280, "height": 860})
    yield await Console.opened(context, site)
    await context.close()


@pytest.fixture(scope="package")
def axe() -> str:
    """The source of axe-core."""
    return (real_servers.console_packages() / "node_modules/axe-core/axe.min.js").read_text()
