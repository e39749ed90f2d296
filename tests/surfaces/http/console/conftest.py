"""One server and one browser for all tests of the console."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from divingbell import Divingbell
from tests import real_servers
from tests.skills.samples import made
from tests.surfaces.http.console.browsing import Console, launched, playwright_here
from tests.surfaces.http.serving import Site, Talking, served


@pytest.fixture(scope="package")
def script() -> Talking:
    """What the model of the chat page says."""
    return Talking()


@pytest.fixture(scope="package")
async def site(script: Talking) -> AsyncIterator[Site]:
    """A server with all that pages show: tools, a rule that asks, skills, an audit log, a model."""
    command, arguments = real_servers.fixture("workshop")
    rules = [{"tools": ["shop.complain"], "action": "ask", "reason": "it is loud"}]
    async with Divingbell(
        pool=1,
        copy_after=0.05,
        interrupt_grace=0.5,
        audit="on",
        skills="on",
        agent={"mode": "code"},
        servers={"shop": {"command": command, "args": arguments}},
        policy={"rules": rules},
        service={"limits": {"timeout": 600.0}},
    ) as bell:
        for answer in (1, 2):
            await bell.skills.add(made(code=f"def run():\n    return {answer}\n"), user="anne")
        async with served(bell, make_model=script.made) as site:
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


@pytest.fixture(scope="package")
async def window(site: Site, browser: Any) -> AsyncIterator[Console]:
    """The page, signed in: one for all, since most of the time goes into loading it."""
    context = await browser.new_context(
        viewport={"width": 1280, "height": 860}, reduced_motion="reduce"
    )
    yield await Console.opened(context, site)
    await context.close()


@pytest.fixture
async def console(window: Console) -> Console:
    """The page, without what it has complained of before."""
    window.complaints.clear()
    return window


@pytest.fixture(scope="package")
def axe() -> str:
    """The source of axe-core."""
    return (real_servers.console_packages() / "node_modules/axe-core/axe.min.js").read_text()
