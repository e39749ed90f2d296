"""deploy/caddy: a real Caddy before real servers, with programs, a notebook and a browser."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from websockets.asyncio.client import connect

from tests.deploy.proxying import NAME, Proxy, proxy
from tests.surfaces.http.console.browsing import launched, playwright_here
from tests.surfaces.http.jupyter.talking import Talker
from tests.surfaces.http.serving import EVENTS, heard
from tests.surfaces.mcp.serving import serving
from tests.waiting import PATIENCE, until

API = "/api/v1"
TOKEN = "anne-has-a-long-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
STARTED = ("--allow-host", NAME, "--token", f"anne={TOKEN}")
WAITING = (
    "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)"
)


@pytest.fixture(scope="module")
async def before(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Proxy]:
    folder = tmp_path_factory.mktemp("proxy")
    async with serving(*STARTED, environment={"XDG_DATA_HOME": str(folder)}) as server:
        address = server.url.removeprefix("http://").partition("/")[0]
        port = address.rpartition(":")[2]
        async with proxy("Caddyfile", folder, DIVINGBELL_ADDRESS=f"127.0.0.1:{port}") as found:
            yield found


async def test_events_come_while_the_cell_still_runs(before: Proxy) -> None:
    async with before.client(**BEARER) as anne:
        where = f"{API}/sessions/pearl"
        async with anne.stream(
            "POST", f"{where}/execute", json={"code": WAITING}, headers=EVENTS
        ) as answer:
            events = heard(answer)
            assert [(await anext(events)).name for _ in range(2)] == ["started", "stdout"]
            # The cell waits for this file: nothing of what came was held back for its end.
            assert (await anne.put(f"{where}/files/go", content=b"")).status_code == 201
            assert [each.name async for each in events] == ["done"]
        async with anne.stream("GET", f"{API}/events") as answer:
            assert (await anext(heard(answer))).name == "hello"


async def test_a_notebook_s_socket_and_mcp_pass(before: Proxy) -> None:
    async with before.client(**BEARER) as anne:
        kernel = (await anne.post("/jupyter/api/kernels")).json()["id"]
        address = f"wss://{NAME}:{before.port}/jupyter/api/kernels/{kernel}/channels?token={TOKEN}"
        async with connect(address, host="127.0.0.1", port=before.port, ssl=before.trust) as socket:
            assert (await Talker(socket).run("print(6 * 7)")).text == "42\n"
        assert (await anne.delete(f"/jupyter/api/kernels/{kernel}")).status_code == 204
        refused = await anne.post("/mcp", json={})
        assert refused.status_code in (400, 406), refused.text


async def test_a_login_by_its_name_gives_a_cookie_for_tls_alone(before: Proxy) -> None:
    async with before.client(Origin=before.origin) as browser:
        answer = await browser.post("/login", json={"token": TOKEN})
        assert answer.status_code == 204
        cookie = answer.headers["set-cookie"]
        assert "; Secure" in cookie and "HttpOnly" in cookie and "SameSite=Strict" in cookie
        signed_in = {"Cookie": cookie.partition(";")[0]}
        assert (
            await browser.post(f"{API}/execute", json={"code": "1"}, headers=signed_in)
        ).is_success
        for origin in (f"http://{NAME}:{before.port}", f"https://{NAME}", "https://127.0.0.1"):
            other = await browser.get(f"{API}/me", headers=signed_in | {"Origin": origin})
            assert other.status_code == 403, origin


async def test_the_console_works_by_its_name(before: Proxy) -> None:
    async with playwright_here() as playwright:
        browser = await launched(playwright, f"--host-resolver-rules=MAP {NAME} 127.0.0.1")
        context = await browser.new_context(ignore_https_errors=True)  # Caddy's own authority
        page = await context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        await page.goto(f"{before.origin}/#token={TOKEN}")
        cell = page.get_by_role("article", name="Cell 1", exact=True)
        await cell.locator(".cm-content").fill("print('by name')\n6 * 7")
        await cell.locator(".cm-content").press("Control+Enter")
        await cell.get_by_label("Result").get_by_text("42").wait_for()
        await browser.close()


# Several

ADDRESSES = [f"127.{n * 37 % 256}.{n * 91 % 256}.{n * 53 % 254 + 1}" for n in range(1, 25)]
"""Of clients. All are this machine's."""


async def test_each_client_comes_to_the_same_of_several_whatever_it_sends(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    async with (
        serving(*STARTED, environment={"XDG_DATA_HOME": str(folders[0])}) as first,
        serving(*STARTED, environment={"XDG_DATA_HOME": str(folders[1])}) as second,
    ):
        ports = [server.url.partition("/mcp")[0].rpartition(":")[2] for server in (first, second)]
        behind = [f"127.0.0.1:{port}" for port in ports]
        async with proxy(
            "Caddyfile.several", tmp_path, DIVINGBELL_FIRST=behind[0], DIVINGBELL_SECOND=behind[1]
        ) as before:

            async def both_are_known() -> bool:
                found = set[int]()
                for address in ADDRESSES:
                    async with before.client(address) as client:
                        if not await _opened(client, "tried"):
                            return False  # it takes neither for up yet
                    at = await _where(behind, "tried")
                    found.add(at)
                    async with httpx2.AsyncClient(headers=BEARER) as direct:
                        await direct.delete(f"http://{behind[at]}{API}/sessions/tried")
                return found == {0, 1}

            # Caddy looks every few seconds whether a server is up.
            await until(both_are_known, "Caddy sends clients to both")
            homes = {await _home(before, behind, address) for address in ADDRESSES}
    assert homes == {0, 1}


async def _open(client: httpx2.AsyncClient, name: str) -> None:
    assert await _opened(client, name), "Caddy knows no server that is up"


async def _opened(client: httpx2.AsyncClient, name: str) -> bool:
    made = await client.post(f"{API}/sessions", json={"id": name}, headers=BEARER)
    assert made.status_code in (201, 503), made.text
    return made.status_code == 201


async def _where(behind: list[str], name: str) -> int:
    """Return at which of the servers a session is."""
    found = []
    for each in behind:
        async with httpx2.AsyncClient(base_url=f"http://{each}", headers=BEARER) as direct:
            found.append((await direct.get(f"{API}/sessions/{name}")).status_code == 200)
    assert sum(found) == 1
    return found.index(True)


async def _home(before: Proxy, behind: list[str], address: str) -> int:
    """Open a session in each of the ways in which clients say who they are; return at which of the
    servers all of them are."""
    name = f"of-{address}"
    async with before.client(address) as client:
        await _open(client, name)
        origin = {"Origin": before.origin}
        login = await client.post("/login", json={"token": TOKEN}, headers=origin)
        cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
        by_cookie = await client.get(f"{API}/sessions/{name}", headers=cookie)
        in_address = await client.get(f"/jupyter/api/kernels/{name}?token={TOKEN}")
        assert (by_cookie.status_code, in_address.status_code) == (200, 200)
    return await _where(behind, name)
