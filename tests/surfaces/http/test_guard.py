"""The guard: who is let in, from where, and what nobody else sees, on every route."""

import asyncio
import re

import httpx2
import pytest

from divingbell import Divingbell
from divingbell.surfaces.auth import Tokens, hash_of
from divingbell.surfaces.http.application import OPEN_PATHS, OPERATIONS
from divingbell.surfaces.http.operations import BASE
from tests.surfaces.http.serving import ANNE, BERT, Site, served
from tests.waiting import PATIENCE

ROUTES = [
    (each.method, BASE + re.sub(r"\{(\w+)(:\w+)?\}", r"\1", each.path)) for each in OPERATIONS
] + [("POST", "/mcp"), ("GET", "/metrics")]


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=" ".join)
async def test_every_route_wants_a_token_and_a_host_and_an_origin_of_ours(
    site: Site, method: str, path: str
) -> None:
    async with site.client(None) as nobody, site.client(ANNE) as anne:
        answer = await nobody.request(method, path)
        assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Bearer")
        assert (await site_with("wrong", site, method, path)).status_code == 401
        rebound = await anne.request(method, path, headers={"Host": "evil.example"})
        assert rebound.status_code == 421
        page = await anne.request(method, path, headers={"Origin": "http://evil.example"})
        assert page.status_code == 403 and "access-control-allow-origin" not in page.headers
        form = {"Origin": f"http://127.0.0.1:{site.port + 1}", "Content-Type": "text/plain"}
        assert (await nobody.request(method, path, headers=form)).status_code in (401, 403)


async def site_with(token: str, site: Site, method: str, path: str) -> httpx2.Response:
    async with site.client(token) as client:
        return await client.request(method, path)


async def test_without_tokens_a_page_of_another_port_is_refused(bell: Divingbell) -> None:
    """Browsers let any page of this machine send to any port of it."""
    async with served(bell, NOBODY) as site, site.client(None) as client:
        site.app.door.__dict__["tokens"] = None
        for origin, status in (
            (f"http://127.0.0.1:{site.port}", 200),
            (f"http://127.0.0.1:{site.port + 1}", 403),
            (f"https://127.0.0.1:{site.port}", 403),
            ("null", 403),
        ):
            answer = await client.get(f"{BASE}/sessions", headers={"Origin": origin})
            assert answer.status_code == status, origin
        far = {"Sec-Fetch-Site": "same-site"}
        assert (await client.get(f"{BASE}/sessions", headers=far)).status_code == 403


"""What the tests of these nouns try with two users."""
NOBODY = Tokens({"anne": hash_of(ANNE)})


async def test_what_is_open_is_answered_without_a_token(site: Site) -> None:
    async with site.client(None) as nobody:
        for path in OPEN_PATHS:
            assert (await nobody.get(path)).status_code in (200, 405), path
        assert (await nobody.get("/outputs/x/1/0")).status_code == 401


async def test_each_answer_has_a_name_of_its_own(anne: httpx2.AsyncClient) -> None:
    names = {(await anne.get("/healthz")).headers["x-request-id"] for _ in range(3)}
    assert len(names) == 3


async def test_a_scope_that_a_token_has_not_is_named(bell: Divingbell) -> None:
    tokens = Tokens({"anne": hash_of(ANNE)}, frozenset({"read"}))
    async with served(bell, tokens) as site, site.client(ANNE) as anne:
        refused = await anne.post(f"{BASE}/execute", json={"code": "1"})
        assert refused.status_code == 403 and "`run`" in refused.json()["detail"]
        assert (await anne.get(f"{BASE}/sessions")).status_code == 200
        assert (await anne.post("/mcp", json={})).status_code == 403


async def test_a_header_that_is_there_twice_is_refused(site: Site) -> None:
    twice = [("Authorization", f"Bearer {ANNE}"), ("Authorization", f"Bearer {BERT}")]
    async with httpx2.AsyncClient() as client:
        answer = await client.get(f"{site.url}{BASE}/me", headers=twice)
    assert answer.status_code == 400


BODIES = (
    b"", b"{", b"null", b"[]", b"\xff", b"[" * 1_000_000, b'{"code":' * 100_000, b'{"code":1}',
    b'{"code":"1","timeout":false}', b'{"code":"1","timeout":1e999}', b'{"code":"1","x":1}',
)  # fmt: skip


async def test_a_body_that_is_something_else_is_refused(anne: httpx2.AsyncClient) -> None:
    for body in BODIES:
        kind = {"Content-Type": "application/json"}
        answer = await anne.post(f"{BASE}/execute", content=body, headers=kind)
        assert answer.status_code in (400, 413), body[:40]
        assert answer.headers["content-type"] == "application/problem+json"
    plain = await anne.post(f"{BASE}/execute", content=b'{"code":"1"}')
    assert plain.status_code == 415


async def test_a_gigabyte_is_refused_before_it_comes(site: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    head = f"POST {BASE}/execute HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ANNE}\r\n"
    more = f"Content-Type: application/json\r\nContent-Length: {1 << 30}\r\n\r\n"
    writer.write((head + more).encode())
    async with asyncio.timeout(PATIENCE):
        assert (await reader.readline()).split()[1] == b"413"
    writer.transport.abort()
