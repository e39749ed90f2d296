"""What a service costs: `./dev bench service [--quick]`.

A warm 1+1 by the library, over the HTTP API and by MCP's execute_python on the same port, in turns;
a file of 200 MB up and down, with the memory that the service grows by; and how soon the console
can be used, in a headless Chromium.
"""

import contextlib
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import apart
import bells
import httpx2
import lists  # noqa: F401 (with it `tests` can be imported)
import load
import table
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from private_serving import processor_time
from runner import Amount, Benchmark
from tests import real_servers
from turns import Turns

from divingbell import Session

LIBRARY, HTTP, MCP = "the library", "the HTTP API", "execute_python over MCP"
MOST_OVER = 0.0005
"""Seconds of processor time over the library."""
MOST_OF_MCP = 0.5
FILE = 200 << 20
MOST_GROWN = 16 << 20
USABLE = 1.0
"""Seconds from the address of the console until a cell takes what is typed."""
EXECUTE = "/api/v1/sessions/work/execute"


class Way:
    """One way to run 1+1, and the processor time that the host's process takes for it."""

    def __init__(self, run: Callable[[], Any], used: Callable[[], float]) -> None:
        self._run, self._used = run, used
        self._taken: list[float] = []

    async def batch(self, times: int) -> list[float]:
        """Run it so many times; return the seconds of each."""
        before, taken = self._used(), []
        for _ in range(times):
            started = time.perf_counter()
            await self._run()
            taken.append(time.perf_counter() - started)
        self._taken.append((self._used() - before) / times)
        return taken

    @property
    def processor(self) -> float:
        """The processor time of one run; the first round is not counted."""
        return median(self._taken[1:])


async def cells(options: Namespace) -> list[table.Row]:
    """A warm 1+1 by each way, one after the other."""
    async with _ways() as ways:
        turned = {name: partial(way.batch, options.batch) for name, way in ways.items()}
        turns = await Turns(turned).take(options.rounds)
    over = ways[HTTP].processor - ways[LIBRARY].processor
    part = turns.ratio(HTTP, MCP)
    targets = {
        HTTP: (
            f"processor {table.at_most(over * 1000, MOST_OVER * 1000, ' ms')} over the library; "
            f"{table.at_most(part, MOST_OF_MCP, '×')} of MCP"
        )
    }
    return [
        table.times(
            "a warm 1+1",
            name,
            turns.times(name),
            ratio=f"{table.seconds(way.processor)} of processor time",
            target=targets.get(name, ""),
        )
        for name, way in ways.items()
    ]


@contextlib.asynccontextmanager
async def _ways() -> AsyncIterator[dict[str, Way]]:
    async with contextlib.AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="divingbell-service-"))
        log = {"folder": f"{folder}/audit", "heads": f"{folder}/heads"}
        # As `serve` has them.
        given: dict[str, Any] = {"privacy": "secrets", "audit": "on", "skills": "on"}
        ringing = bells.ring(**given, metrics="on", audit_log=log)
        bell = await stack.enter_async_context(ringing)
        session = await stack.enter_async_context(bell.session())
        service = await stack.enter_async_context(load.served(1))
        headers = {"Authorization": f"Bearer {service.tokens[0]}"}
        api = await stack.enter_async_context(_client(service, headers))
        pipe = streamable_http_client(f"{service.url}/mcp", http_client=_client(service, headers))
        client = await stack.enter_async_context(Client(pipe))
        used = partial(processor_time, service.process.pid)
        yield {
            LIBRARY: Way(partial(_by_library, session), time.process_time),
            HTTP: Way(partial(_by_api, api), used),
            MCP: Way(partial(_by_mcp, client), used),
        }


def _client(service: load.Service, headers: dict[str, str]) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=load.PATIENCE)


async def _by_library(session: Session) -> None:
    assert (await session.run("1+1")).value == 2


async def _by_api(client: httpx2.AsyncClient) -> None:
    response = await client.post(EXECUTE, json={"code": "1+1"})
    assert response.json()["value"] == 2, response.text


async def _by_mcp(client: Client) -> None:
    result = await client.call_tool("execute_python", {"code": "1+1"})
    assert not result.is_error, result


async def files(options: Namespace) -> list[table.Row]:
    """One large file up and down; what the service holds more of at its most."""
    size = options.megabytes << 20
    async with load.served(1, disk="512MB", memory="1GB") as service:
        headers = {"Authorization": f"Bearer {service.tokens[0]}"}
        async with _client(service, headers) as client:
            await _by_api(client)
            before = _peak(service.process.pid)
            path = "/api/v1/sessions/work/files/large"
            up = await client.put(path, content=_zeros(size))
            assert up.status_code in (200, 201), up.text
            count = 0
            async with client.stream("GET", path) as down:
                async for piece in down.aiter_bytes():
                    count += len(piece)
            grown = _peak(service.process.pid) - before
    assert count == size, (count, size)
    target = table.at_most(grown / (1 << 20), MOST_GROWN / (1 << 20), " MB")
    subject = f"{options.megabytes} MB up and down: the service grew by"
    return [table.Row("files", subject, f"{grown / (1 << 20):.1f} MB", target=target)]


async def _zeros(size: int) -> AsyncIterator[bytes]:
    piece = bytes(1 << 18)
    for _ in range(size // len(piece)):
        yield piece


def _peak(pid: int) -> int:
    """The most memory that a process has had so far, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the kernel tells no VmHWM")


async def console(options: Namespace) -> list[table.Row]:
    """The console in a browser that has never seen it: until it takes keys, and shows a result."""
    typed, shown = [], []
    async with load.served(1) as service, _browser() as browser:
        for number in range(options.pages + 1):
            context = await browser.new_context()
            page = await context.new_page()
            began = time.perf_counter()
            await page.goto(f"{service.url}/#token={service.tokens[0]}")
            editor = page.locator(".cm-content").first
            await editor.press("4")
            first = time.perf_counter() - began
            await editor.press_sequentially(f"0_000 + {number}")
            await editor.press("Control+Enter")
            await page.get_by_text(str(number + 40_000), exact=True).first.wait_for()
            if number:  # the first one also starts the browser's own parts
                typed.append(first)
                shown.append(time.perf_counter() - began)
            await context.close()
    target = table.at_most(median(typed) * 1000, USABLE * 1000, " ms")
    return [
        table.times("console", "from its address to keys that are taken", typed, target=target),
        table.times("console", "and to the first result of a cell", shown),
    ]


@contextlib.asynccontextmanager
async def _browser() -> AsyncIterator[Any]:
    """A headless Chromium of the system, driven by Playwright."""
    sys.path.append(str(real_servers.browser_packages()))
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=real_servers.need_program("chromium"),
            args=["--no-sandbox", "--disable-gpu", "--no-first-run"],
        )
        try:
            yield browser
        finally:
            await browser.close()


if __name__ == "__main__":
    Benchmark(
        "service",
        __doc__.partition("\n")[0],
        {"cells": cells, "files": files, "console": console},
        {
            "rounds": Amount("rounds of each way", 20, 2),
            "batch": Amount("cells in a round", 50, 10),
            "pages": Amount("times that the console is opened", 10, 1),
            "megabytes": Amount("size of the file", FILE >> 20, 20),
        },
        within=[apart.home],
    ).main()
