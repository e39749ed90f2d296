"""Every address, the WebSocket too: what a web page of somebody else can send, and who may what."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from divingbell import Divingbell
from divingbell.surfaces.auth import SCOPES, Tokens, hash_of
from divingbell.surfaces.http.visitor import Visitor
from divingbell.surfaces.token_store import TokenStore
from tests.surfaces.http.addresses import ADDRESSES, SOCKET, Address, routed
from tests.surfaces.http.serving import ANNE, Site, served

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    return TokenStore(tmp_path_factory.mktemp("tokens") / "tokens.json")


@pytest.fixture(scope="module")
async def site(bell: Divingbell, store: TokenStore) -> AsyncIterator[Site]:
    async with served(bell, Tokens({"anne": hash_of(ANNE)}, frozenset(SCOPES), store)) as site:
        yield site


@pytest.fixture(scope="module")
async def nobody(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without a token."""
    async with site.client(None) as client:
        yield client


@pytest.fixture(scope="module")
async def cookie(site: Site) -> str:
    """The cookie of somebody who is signed in at the console."""
    async with site.client(None, Origin=site.url) as browser:
        answer = await browser.post("/login", json={"token": ANNE})
        assert answer.status_code == 204
        return answer.headers["set-cookie"].partition(";")[0]


async def test_every_route_is_known_here(site: Site) -> None:
    assert routed(site.app) == {(each.method, each.path) for each in ADDRESSES}


every = pytest.mark.parametrize("address", ADDRESSES, ids=str)


@every
async def test_a_form_of_another_port_is_refused_whatever_the_browser_adds(
    site: Site, nobody: httpx2.AsyncClient, cookie: str, address: Address
) -> None:
    """Cookies know no ports: a page at any port of this machine is sent with ours."""
    own = await address.asked(nobody, None, **FORM, Cookie=cookie, Origin=site.url)
    assert (own.status_code, _code(own)) not in ((401, "unauthorized"), (403, "wrong_origin"))
    for origin in (f"http://127.0.0.1:{site.port + 1}", "http://evil.example", "null"):
        for more in ({}, {"Sec-Fetch-Site": "same-site"}):
            page = await address.asked(nobody, None, **FORM, Cookie=cookie, Origin=origin, **more)
            assert _is_wrong_origin(page, address), (origin, page.status_code, page.text)
    if address.need is not None:
        far = await address.asked(
            nobody, None, **FORM, Cookie=cookie, **{"Sec-Fetch-Site": "cross-site"}
        )
        assert _is_wrong_origin(far, address)
    if address.method not in ("GET", SOCKET) and address.need is not None:
        silent = await address.asked(nobody, None, **FORM, Cookie=cookie)
        assert _is_wrong_origin(silent, address)


@every
async def test_a_host_of_another_name_is_refused(
    site: Site, nobody: httpx2.AsyncClient, cookie: str, address: Address
) -> None:
    """A page whose own name was made to point at this machine."""
    for token, more in ((ANNE, {}), (None, {"Cookie": cookie})):
        for host in ("evil.example", f"evil.example:{site.port}", "127.0.0.1.evil.example", ""):
            rebound = await address.asked(
                nobody, token, Host=host, Origin=f"http://{host or 'evil.example'}", **more
            )
            refused = 403 if address.method == SOCKET else 421
            # What has no Host at all is no HTTP: it is refused before it is looked at.
            assert rebound.status_code == refused, (host, rebound.status_code)


@every
async def test_a_token_meets_only_the_addresses_of_its_scopes(
    nobody: httpx2.AsyncClient, store: TokenStore, address: Address
) -> None:
    for scope in SCOPES:
        token, _ = store.create("carl", frozenset({scope}))
        answer = await address.asked(nobody, token)
        may = address.need is None or Visitor("carl", frozenset({scope})).may(address.need)
        is_refused = (
            answer.status_code == 403 and f"takes the scope `{address.need}`" in answer.text
        )
        assert is_refused != may, (scope, answer.status_code, answer.text)
    if address.need is not None:
        refused = 403 if address.method == SOCKET else 401
        assert (await address.asked(nobody)).status_code == refused
        assert (await address.asked(nobody, "wrong")).status_code == refused


async def test_a_page_of_this_machine_that_has_the_token_reaches_a_kernel_and_others_do_not(
    site: Site,
) -> None:
    """A notebook in a browser comes from a port of its own: who has the token is let in, as any
    program of this machine is. Nothing that a browser adds by itself has the token."""
    async with site.client() as anne:
        kernel = (await anne.post("/jupyter/api/kernels")).json()["id"]
    address = f"{site.url.replace('http', 'ws', 1)}/jupyter/api/kernels/{kernel}/channels"
    async with connect(f"{address}?token={ANNE}", origin=f"http://127.0.0.1:{site.port + 1}"):  # type: ignore[arg-type]
        pass
    for query, origin in (
        (f"?token={ANNE}", "http://evil.example"),
        (f"?token={ANNE}", "null"),
        ("?token=wrong-but-long-enough", f"http://127.0.0.1:{site.port + 1}"),
        ("", f"http://127.0.0.1:{site.port + 1}"),
    ):
        with pytest.raises(InvalidStatus):
            async with connect(f"{address}{query}", origin=origin):  # type: ignore[arg-type]
                pass
    async with site.client() as anne:
        assert (await anne.delete(f"/jupyter/api/kernels/{kernel}")).status_code == 204


async def test_nothing_of_the_page_is_open_below_a_path_that_leads_elsewhere(
    nobody: httpx2.AsyncClient,
) -> None:
    for path in ("/assets/..%2findex.html", "/assets/%2e%2e/api/v1/me", "/assets/../metrics"):
        assert (await nobody.get(path)).status_code in (401, 404), path


def _code(answer: httpx2.Response) -> str:
    if answer.headers.get("content-type") != "application/problem+json":
        return ""
    return str(answer.json()["code"])


def _is_wrong_origin(answer: httpx2.Response, address: Address) -> bool:
    # A WebSocket that is not opened has no words: uvicorn answers with the status alone.
    return answer.status_code == 403 and (
        address.method == SOCKET or _code(answer) == "wrong_origin"
    )
