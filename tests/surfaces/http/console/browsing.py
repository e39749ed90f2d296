"""A real browser, driven by Playwright from an environment of its own."""

import contextlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from tests import real_servers
from tests.surfaces.http.serving import ANNE, Site
from tests.waiting import PATIENCE

FLAGS = [
    "--no-sandbox",  # the tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.asynccontextmanager
async def playwright_here() -> AsyncIterator[Any]:
    """Playwright; what can't be had skips the test, and fails it in CI."""
    folder = str(real_servers.browser_packages())
    if folder not in sys.path:
        sys.path.append(folder)
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        yield playwright


async def launched(playwright: Any, *flags: str) -> Any:
    """The system's own Chromium."""
    return await playwright.chromium.launch(
        executable_path=real_servers.need_program("chromium"),
        args=[*FLAGS, *flags],
        # Connections that it makes ahead of time are among what is looked at.
        ignore_default_args=["--disable-background-networking"],
    )


@dataclass
class Console:
    """The console in a tab."""

    page: Any
    site: Site
    complaints: list[str]
    """What the browser has said of errors, of our policy too."""
    requests: list[str]

    @classmethod
    async def opened(cls, context: Any, site: Site, token: str = ANNE) -> "Console":
        page = await context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        console = cls(page, site, [], [])
        page.on("console", console._said)
        page.on("pageerror", lambda error: console.complaints.append(str(error)))
        page.on("request", lambda request: console.requests.append(request.url))
        await page.goto(f"{site.url}/#token={token}")
        await page.locator("main h1").first.wait_for(state="attached")
        return console

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    async def show(self, name: str) -> None:
        """Go to a page."""
        await self.page.goto(f"{self.site.url}/#/{name}")

    async def begin(self, session: str) -> None:
        """Take a session of its own, with one empty cell."""
        kept = f'{{"session": "{session}", "cells": []}}'
        await self.show("cells")
        await self.page.evaluate("kept => sessionStorage.setItem('divingbell.cells', kept)", kept)
        await self.page.reload()

    async def write(self, code: str, number: int = 1) -> Any:
        """Write code into a cell, a new one if it is not there; returns the cell."""
        if number > 1:
            await self.page.get_by_role("button", name="Cell", exact=True).click()
        cell = self.page.get_by_role("article", name=f"Cell {number}", exact=True)
        await cell.locator(".cm-content").fill(code)
        return cell

    async def run(self, code: str, number: int = 1) -> Any:
        """Write code into a cell and run it to its end; returns the cell."""
        cell = await self.write(code, number)
        await cell.locator(".cm-content").press("Control+Enter")
        await cell.locator(".foot .mark").wait_for()
        return cell
