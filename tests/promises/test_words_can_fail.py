"""Without what keeps them, promises about sign-ins, disguised secrets and words are broken."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp.client.auth import OAuthClientProvider

from divingbell import Divingbell, disguises
from divingbell.gateway import callers
from divingbell.gateway.sign_in import issuer, oauth
from divingbell.gateway.upstream.transport import server_log
from divingbell.surfaces.mcp import exits
from tests.promises.breaking import broken


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0) as bell:
        yield bell


async def test_a_sign_in_that_believes_the_server_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await broken(own_bell, {"T80", "T81"}) == set()

    async def ask_anybody(url: str) -> None:
        raise issuer.OAuthFlowError("nobody is there")

    def attended(self: Any, server: Any, store: Any) -> None:
        metadata = oauth._metadata(server, "http://127.0.0.1/callback")
        OAuthClientProvider.__init__(self, server.url, metadata, store, ask_anybody)
        self._server, self._store = server, store
        store.serve(self)

    monkeypatch.setattr(issuer, "check_endpoints", lambda *_: None)
    monkeypatch.setattr(issuer.GuardedProvider, "_check", lambda *_: None)
    monkeypatch.setattr(oauth._Unattended, "__init__", attended)
    monkeypatch.setattr(oauth._Unattended, "async_auth_flow", OAuthClientProvider.async_auth_flow)
    assert await broken(own_bell, {"T80", "T81"}) == {"T80", "T81"}


async def test_words_as_they_come_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"T82", "T83", "D70", "D71"}
    assert await broken(own_bell, rows) == set()

    def cut_first(self: server_log.ServerLog, data: bytes) -> None:
        for line in data.decode().split("\n"):
            self._lines(line[: server_log.MAX_LINE])

    monkeypatch.setattr(disguises.Disguises, "views", lambda *_: [])
    monkeypatch.setattr(server_log.ServerLog, "take", cut_first)
    monkeypatch.setattr(exits, "everywhere", lambda value, _: value)
    monkeypatch.setattr(exits, "visible", lambda words, _: words)
    monkeypatch.setattr(callers, "signed", lambda params, _: params)
    assert await broken(own_bell, rows) == rows
