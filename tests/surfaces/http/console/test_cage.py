"""What code shows must not become its network: every way out that is known, in a real browser."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from divingbell.promises import PROMISES
from divingbell.surfaces.http.console.cage import POLICY, SCRIPT_POLICY
from tests.surfaces.http.console import ways_out
from tests.surfaces.http.console.browsing import Console, launched
from tests.surfaces.http.serving import EVENTS, Site, heard
from tests.waiting import until

DOMAIN = "leak.test"
WAYS = [*ways_out.MARKUP, *ways_out.SCRIPTS]
OF_ONE_PAGE = 12
"""Ways that are tried in one page: with all of them in one, a browser on a busy machine crashes."""
TIGHT = {
    "preconnect",
    "DNS prefetch",
    "track",
    "report",
    "new DNS prefetch",
    "speculation",
    "location of the page",
    "location as script",
    "WebRTC of a frame",
    "WebRTC in a script address",
}
"""The ways that let nothing out of a sandboxed frame even without a policy."""


def slug(way: str) -> str:
    return re.sub(r"\W+", "-", way).lower()


class Catcher:
    """Listens, and remembers under which names it was spoken to."""

    def __init__(self) -> None:
        self.heard: set[str] = set()

    async def __aenter__(self) -> "Catcher":
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.read(65536)
        path = head.split(b" ")[1:2]
        if path and path[0].startswith(b"/open/"):
            body = self.page(WAYS[int(path[0][6:])], "open").encode()
        else:
            host = re.search(rb"(?i)^host: ([\w-]+)\.", head, re.MULTILINE)
            self.heard.update([host[1].decode()] if host else [])
            body = b"<!doctype html><body>"
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        writer.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @staticmethod
    def open(way: str) -> str:
        """Where the page is that tries one way out of a frame without a cage."""
        return f"/open/{WAYS.index(way)}"

    def page(self, way: str, kind: str) -> str:
        """A page that tries one way out."""
        name = f"{kind}-{slug(way)}.{DOMAIN}"
        return ways_out.page(way, f"http://{name}:{self.port}/x", name)


PUT_FRAMES = """addresses => {
    for (const address of addresses) {
        const frame = document.createElement("iframe");
        if (address.startsWith("/open/")) frame.sandbox = "allow-scripts allow-forms allow-popups";
        frame.width = 60; frame.height = 40; frame.src = address;
        document.body.append(frame);
    }
}"""


async def _try(page: Any, addresses: dict[str, str]) -> None:
    """Open what tries each of these ways out, and click what waits for a click."""
    await page.evaluate(PUT_FRAMES, list(addresses.values()))
    await until(lambda: len(page.frames) > len(addresses), "the frames are there")
    await page.wait_for_load_state("load")
    for way, address in addresses.items():
        if 'id="go"' in ways_out.page(way, "", ""):
            target = page.frame_locator(f"iframe[src='{address}']").locator("#go")
            await target.dispatch_event("mouseover")
            await target.click(force=True, no_wait_after=True)


async def _shown(client: httpx2.AsyncClient, catcher: Catcher) -> dict[str, str]:
    pages = [catcher.page(way, "caged") for way in WAYS]
    code = f"from IPython.display import HTML, display\nfor each in {pages!r}: display(HTML(each))"
    asked = {"code": code}
    where = "/api/v1/sessions/ways-out/execute"
    addresses = []
    async with client.stream("POST", where, json=asked, headers=EVENTS) as answer:
        async for event in heard(answer):
            if event.name == "started":
                execution = event.data["execution"]
            if event.name == "display":
                types = [each["type"] for each in event.data["outputs"]]
                place = f"/outputs/{execution}/{event.number}/{types.index('text/html')}"
                is_script = WAYS[len(addresses)] in ways_out.SCRIPTS
                addresses.append(place + ("?scripts=run" if is_script else ""))
    return dict(zip(WAYS, addresses, strict=True))


def _named_in(log: Path) -> set[str]:
    """The names that the browser has looked up, connected to or asked, as it says itself."""
    return set(re.findall(rf"([\w-]+)\.{DOMAIN}", log.read_text("utf-8", "replace")))


@pytest.fixture(scope="module")
async def escaped(site: Site, playwright: Any, tmp_path_factory: Any) -> AsyncIterator[set[str]]:
    """What got out: of the cage first, and then, from frames without it, all that can."""
    log = tmp_path_factory.mktemp("browser") / "net.json"
    async with Catcher() as catcher, site.client() as client:
        caged = await _shown(client, catcher)
        flags = (f"--log-net-log={log}", f"--host-resolver-rules=MAP *.{DOMAIN} 127.0.0.1")
        browser = await launched(playwright, *flags)
        try:
            console = await Console.opened(await browser.new_context(), site)
            await _try(console.page, caged)
            # What is in the cage has tried first: when the others have got out, it would have.
            stranger = await browser.new_context()
            for begin in range(0, len(WAYS), OF_ONE_PAGE):
                page = await stranger.new_page()
                await page.goto(catcher.url)
                await _try(page, {way: catcher.open(way) for way in WAYS[begin:][:OF_ONE_PAGE]})
            can = {f"open-{slug(way)}" for way in set(WAYS) - TIGHT}
            await until(lambda: can <= catcher.heard | _named_in(log), "all that can has got out")
        finally:
            await browser.close()
        yield catcher.heard | _named_in(log)


def test_each_way_out_is_in_one_promise() -> None:
    """What is promised is tried, and what is tried is promised."""
    promised = [way for promise in PROMISES for way in promise.ways]
    assert sorted(promised) == sorted(WAYS)


@pytest.mark.parametrize("way", sorted(set(WAYS) - TIGHT))
async def test_without_the_cage_it_gets_out(way: str, escaped: set[str]) -> None:
    assert f"open-{slug(way)}" in escaped


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_gets_out_of_the_cage(way: str, escaped: set[str]) -> None:
    assert f"caged-{slug(way)}" not in escaped


async def _output(client: httpx2.AsyncClient, code: str) -> str:
    """Run code that shows one thing; returns the address of its first part that is markup."""
    where = "/api/v1/sessions/shows/execute"
    async with client.stream("POST", where, json={"code": code}, headers=EVENTS) as answer:
        async for event in heard(answer):
            if event.name == "started":
                execution = event.data["execution"]
            for number, each in enumerate(event.data.get("outputs", ())):
                if each["type"] in ("text/html", "image/svg+xml"):
                    found = f"/outputs/{execution}/{event.number}/{number}"
    return found


IN_FRAME = {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
async def output(site: Site) -> str:
    async with site.client() as client:
        return await _output(client, "from IPython.display import HTML\nHTML('<b>x</b>')")


async def test_an_output_is_given_into_a_frame_alone(anne: httpx2.AsyncClient, output: str) -> None:
    answer = await anne.get(output, headers=IN_FRAME)
    assert answer.text.endswith("<b>x</b>")
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["connection-allowlist"] == "()"
    for destination in ("document", "image", "script", "empty", "embed"):
        refused = await anne.get(output, headers={"Sec-Fetch-Dest": destination})
        assert refused.status_code == 403 and "<b>" not in refused.text
    assert (await anne.get(output)).status_code == 403


async def test_scripts_have_no_policy_but_their_runner(
    anne: httpx2.AsyncClient, output: str
) -> None:
    answer = await anne.get(f"{output}?scripts=run", headers=IN_FRAME)
    assert answer.headers["content-security-policy"] == SCRIPT_POLICY
    assert "'unsafe-inline'" not in SCRIPT_POLICY.split("script-src")[1].split(";")[0]


async def test_an_output_of_another_is_not_there(bert: httpx2.AsyncClient, output: str) -> None:
    assert (await bert.get(output, headers=IN_FRAME)).status_code == 404


async def test_without_a_cookie_or_a_token_nothing_is_shown(site: Site, output: str) -> None:
    async with site.client(None) as client:
        assert (await client.get(output, headers=IN_FRAME)).status_code == 401


@pytest.mark.parametrize("end", ["/0/0", "/99999/0", "/1/99", "/x/0", "/1/-1", "/%2e%2e/0"])
async def test_what_was_not_shown_is_not_there(
    anne: httpx2.AsyncClient, output: str, end: str
) -> None:
    execution = output.rsplit("/", 2)[0]
    assert (await anne.get(execution + end, headers=IN_FRAME)).status_code == 404
