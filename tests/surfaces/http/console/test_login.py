"""A token becomes a cookie, which is good here and for nothing that another page sends."""

from typing import Any

import httpx2
import pytest

from divingbell.surfaces.http.console.login import MAX_BODY
from divingbell.surfaces.http.logins import MOST, MOST_OF_TOKEN, Logins
from tests.surfaces.http.serving import ANNE, Site

WRONG = "nobody-has-this-long-token"


async def test_a_token_becomes_a_cookie_that_no_script_reads(
    stranger: httpx2.AsyncClient, site: Site
) -> None:
    answer = await stranger.post("/login", json={"token": ANNE}, headers={"Origin": site.url})
    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"divingbell_{site.port}=") and ANNE not in cookie
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    assert (await stranger.get("/api/v1/me")).json()["user"] == "anne"


async def test_what_comes_with_the_cookie_needs_our_own_origin(
    stranger: httpx2.AsyncClient, site: Site
) -> None:
    await stranger.post("/login", json={"token": ANNE})
    run = {"json": {"code": "1"}}
    where = "/api/v1/sessions/origins/execute"
    for origin in ("http://127.0.0.1:1", "http://evil.test", "null"):
        answer = await stranger.post(where, headers={"Origin": origin}, **run)
        assert answer.status_code == 403, origin
    assert (await stranger.post(where, **run)).status_code == 403
    assert (await stranger.post(where, headers={"Origin": site.url}, **run)).status_code == 200


@pytest.mark.parametrize("body", [{"token": WRONG}, {"token": ""}])
async def test_a_wrong_token_is_refused(stranger: httpx2.AsyncClient, body: dict[str, str]) -> None:
    answer = await stranger.post("/login", json=body)
    assert answer.status_code == 401 and "set-cookie" not in answer.headers


async def test_a_link_whose_token_is_wrong_says_so(browser: Any, site: Site) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{site.url}/#token={WRONG}")
    await page.get_by_role("alert").get_by_text("the token is wrong, has expired").wait_for()
    assert WRONG not in page.url
    await context.close()


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"token": 1}', b'{"token": "x", "a": 1}'])
async def test_what_is_no_token_is_refused(stranger: httpx2.AsyncClient, body: bytes) -> None:
    answer = await stranger.post(
        "/login", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400


async def test_another_page_can_sign_nobody_in(stranger: httpx2.AsyncClient) -> None:
    headers = {"Origin": "http://evil.test"}
    assert (await stranger.post("/login", json={"token": ANNE}, headers=headers)).status_code == 403


async def test_a_stranger_sends_little(stranger: httpx2.AsyncClient) -> None:
    for path in ("/login", "/logout"):
        answer = await stranger.post(path, json={"token": "x" * MAX_BODY})
        assert answer.status_code == 413, path


def test_whoever_signs_in_again_and_again_signs_out_nobody_else() -> None:
    logins = Logins()
    other = logins.begin("another-token")
    mine = [logins.begin("a-token") for _ in range(MOST + 1)]
    assert logins.of(other) is not None
    assert [logins.of(each) is not None for each in mine[-MOST_OF_TOKEN - 1 :]] == [
        False, *[True] * MOST_OF_TOKEN,
    ]  # fmt: skip
    logins.end(mine[-1])
    assert logins.of(mine[-1]) is None and logins.of(mine[-2]) is not None
