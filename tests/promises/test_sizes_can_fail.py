"""The checks of sizes see it when what keeps them is taken away."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.gateway.catalog import descriptions
from divingbell.gateway.gateway import Gateway
from divingbell.gateway.upstream.transport import messages, unanswered
from divingbell.promises.check import definitions, serving, tool_rig
from divingbell.session.calls import Calls
from divingbell.settings.policy import Policy
from divingbell.shares.allowance import Hold
from divingbell.surfaces.http import connections, quotas
from divingbell.surfaces.mcp import endpoint, openings
from tests.promises.breaking import broken


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0) as bell:
        yield bell


_ended = Calls._ended


def _ended_once_begun(self: Calls, *about: Any) -> None:
    if not about[-1].cancelled():
        _ended(self, *about)


async def test_calls_and_results_that_are_not_weighed_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Policy, "check_arguments", lambda *_: None)
    monkeypatch.setattr(Gateway, "cost", lambda *_: 0)
    monkeypatch.setattr(Hold, "grow", lambda *_: True)
    monkeypatch.setattr("divingbell.shares.weight.MAX_RESULT", 1 << 60)
    monkeypatch.setattr(unanswered, "MAX_PARTS", 1 << 60)
    monkeypatch.setattr(messages, "MAX_UNASKED", 1 << 60)
    monkeypatch.setattr(definitions, "_VERY_MANY", 200_000)  # this process shall survive it
    monkeypatch.setitem(tool_rig.POLICY, "tool_timeout", 2.0)
    monkeypatch.setattr(Calls, "_ended", _ended_once_begun)
    monkeypatch.setattr(descriptions, "MAX_DESCRIBED", 1 << 60)
    rows = {"H70", "H71", "H72", "D50", "D51", "D52", "D53"}
    assert await broken(own_bell, rows) == rows


async def test_a_server_that_serves_everybody_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openings, "opens_connection", lambda scope: False)
    monkeypatch.setattr(quotas.Body, "_take", lambda *_: None)
    monkeypatch.setattr(quotas.Share, "request", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(connections.Connections, "arrived", lambda *_: None)
    monkeypatch.setattr(endpoint, "MAX_BODY", 1 << 40)
    monkeypatch.setattr(serving, "_PATIENCE", 1.0)
    rows = {"T50", "T51", "T52", "T53"}
    assert await broken(own_bell, rows) == rows
