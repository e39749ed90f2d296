"""Whom a sign-in asks: places of the issuer's, and what a person sees of it before."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthFlowError

from divingbell.errors import ToolFailed
from divingbell.gateway.sign_in.issuer import SignIn, check_address
from divingbell.gateway.sign_in.oauth import Credentials, login
from divingbell.promises.check.sign_ins import Place, sign_in
from divingbell.settings.servers import OAuth, Server
from tests.gateway.upstreams import failure_of, running

SECRET = "the-clients-secret"


@dataclass
class Stage:
    """A server that is not to be trusted, and a provider that is."""

    hostile: Place
    provider: Place
    folder: Path

    def server(self, **oauth: Any) -> Server:
        url = f"{self.hostile.origin}/mcp"
        return Server("shop", url=url, transport="http", oauth=OAuth(**oauth))

    def client(self) -> Server:
        return self.server(
            client_id="us", client_secret=SECRET, issuer=self.provider.origin, scopes=("read",)
        )


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Place.open() as hostile, Place.open() as provider:
        provider.publish(provider.origin)
        yield Stage(hostile, provider, tmp_path / "oauth")


async def test_a_token_endpoint_beside_anothers_page_is_refused_before_a_browser_opens(
    stage: Stage,
) -> None:
    page = f"{stage.provider.origin}/authorize"
    stage.hostile.publish(stage.hostile.origin, authorization_endpoint=page)
    reason = await sign_in(stage.server(), stage.folder)
    assert "its authorization_endpoint is at" in reason and "not at its issuer" in reason
    assert not any("/token" in path for path in stage.hostile.paths())


async def test_a_token_endpoint_that_is_not_the_issuers_gets_nothing(stage: Stage) -> None:
    stage.provider.publish(stage.provider.origin, token_endpoint=f"{stage.hostile.origin}/token")
    stage.hostile.publish(stage.provider.origin)
    assert "its token_endpoint is at" in await sign_in(stage.client(), stage.folder)
    assert not any(SECRET in said for said in stage.hostile.asked)


async def test_metadata_that_names_another_issuer_is_refused(stage: Stage) -> None:
    stage.hostile.publish(stage.hostile.origin)
    stage.hostile.answers["/.well-known/oauth-authorization-server"]["issuer"] = (
        stage.provider.origin
    )
    assert "issuer mismatch" in await sign_in(stage.server(), stage.folder)


@pytest.mark.parametrize("says", ["itself", "nothing"])
async def test_our_client_is_used_at_its_own_issuer_whatever_the_server_says(
    stage: Stage, says: str
) -> None:
    if says == "itself":
        stage.hostile.publish(stage.hostile.origin)
    reason = await sign_in(stage.client(), stage.folder)
    assert not any(SECRET in said or "the-code" in said for said in stage.hostile.asked)
    if says == "itself":
        assert f"the issuer in its entry is {stage.provider.origin}" in reason
    else:  # the issuer of the entry was asked, and has given its token
        [told] = [said for said in stage.provider.asked if "grant_type" in said]
        assert f"client_secret={SECRET}" in told


async def test_a_person_sees_who_is_asked_for_what_and_the_token_names_its_resource(
    stage: Stage,
) -> None:
    stage.hostile.publish(stage.provider.origin)
    stage.hostile.challenge = 'Bearer scope="admin everything"'
    for server, scopes in ((stage.server(), ("admin", "everything")), (stage.client(), ("read",))):
        told: list[SignIn] = []
        with pytest.raises(ToolFailed, match="nobody signed in"):
            await login(
                server,
                told.append,
                credentials=Credentials(stage.folder),
                open_browser=False,
                timeout=0.5,
            )
        [shown] = told
        assert shown.scopes == scopes
        assert shown.issuer == shown.token_origin == stage.provider.origin
        assert stage.provider.origin in str(shown) and ", ".join(scopes) in str(shown)
        asked = parse_qs(urlsplit(shown.url).query)
        assert asked["resource"] == [f"{stage.hostile.origin}/mcp"]
        assert asked["scope"] == [" ".join(scopes)]


async def test_an_answer_of_another_issuer_is_refused(stage: Stage) -> None:
    stage.hostile.publish(stage.hostile.origin)
    clicks: list[asyncio.Task[Any]] = []

    async def click(url: str) -> None:
        asked = parse_qs(urlsplit(url).query)
        answer = {"code": "x", "state": asked["state"][0], "iss": stage.provider.origin}
        async with httpx2.AsyncClient() as browser:
            await browser.get(asked["redirect_uri"][0], params=answer)

    with pytest.raises(ToolFailed, match="iss mismatch"):
        await login(
            stage.server(),
            lambda told: clicks.append(asyncio.ensure_future(click(told.url))),
            credentials=Credentials(stage.folder),
            open_browser=False,
            timeout=10,
        )
    await asyncio.gather(*clicks)


@pytest.mark.parametrize(
    "url",
    [
        "http://auth.example.com/", "https://127.0.0.1/", "https://localhost/", "https://a.localhost/",
        "https://169.254.169.254/latest", "https://10.0.0.1/", "https://[::1]/", "https://127.1/",
        "https://[::ffff:127.0.0.1]/", "https://0x7f000001/", "https://2130706433/", "file:///etc",
    ],
)  # fmt: skip
def test_a_public_server_can_not_have_addresses_of_this_network_asked(url: str) -> None:
    server = Server("shop", url="https://shop.example/mcp", transport="http", oauth=OAuth())
    with pytest.raises(OAuthFlowError, match="is not asked"):
        check_address(url, server)
    check_address("https://auth.example.com/token", server)
    check_address("https://10.0.0.1/x", replace(server, url="https://10.0.0.1/mcp"))


# Nobody there


async def test_a_401_makes_the_host_ask_nobody_that_the_server_names(stage: Stage) -> None:
    server, credentials = stage.server(), Credentials(stage.folder)
    stage.hostile.publish(stage.provider.origin)
    assert await sign_in(server, stage.folder)  # it gives 401 again, with the token too
    path = credentials.path(server)
    assert json.loads(path.read_text())["tokens"]["access_token"] == "given"
    stage.hostile.asked.clear()
    stage.provider.asked.clear()
    async with running(server, stage.folder.parent, credentials=credentials) as upstream:
        assert "sign in again" in str(await failure_of(upstream, "anything", {}))
    assert set(stage.hostile.paths()) == {"/mcp"}
    assert not stage.provider.asked


async def test_a_token_is_refreshed_where_it_was_got_and_nowhere_else(stage: Stage) -> None:
    server, credentials = stage.server(), Credentials(stage.folder)
    stage.hostile.publish(stage.provider.origin)
    stage.provider.answers["/token"] = {"access_token": "one", "refresh_token": "again"}
    await sign_in(server, stage.folder)
    stage.provider.answers["/token"] = {"access_token": "two", "refresh_token": "more"}
    stage.provider.asked.clear()
    stage.hostile.publish(stage.hostile.origin)
    stage.hostile.asked.clear()
    async with running(server, stage.folder.parent, credentials=credentials) as upstream:
        assert "sign in again" in str(await failure_of(upstream, "anything", {}))
    assert set(stage.provider.paths()) == {"/token"}
    assert "resource=" in stage.provider.asked[0]
    assert any("Bearer two" in said for said in stage.hostile.asked)
    assert set(stage.hostile.paths()) == {"/mcp"}


async def test_tokens_are_for_one_server_and_one_issuer(stage: Stage) -> None:
    server, credentials = stage.server(), Credentials(stage.folder)
    stage.hostile.publish(stage.provider.origin)
    await sign_in(server, stage.folder)
    moved = replace(server, url=f"{stage.hostile.origin}/other")
    credentials.path(server).rename(credentials.path(moved))  # even then
    for entry in (moved, stage.client()):
        stage.hostile.asked.clear()
        async with running(entry, stage.folder.parent, credentials=credentials) as upstream:
            assert "sign in first" in str(await failure_of(upstream, "anything", {}))
        assert not any("Bearer given" in said for said in stage.hostile.asked)
