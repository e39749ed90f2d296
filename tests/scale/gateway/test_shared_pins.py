"""Definitions of tools at several replicas: what one has seen first, all compare with."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.policy.pins import SharedPins, digest
from divingbell.scale.gateway import link as gateway_link
from divingbell.scale.gateway.shared import SharedGateway
from divingbell.settings.policy import Policy
from divingbell.tool import Tool
from tests.scale.gateway import hosts

TOOL = Tool("shop", "buy", "shop", "buy", description="buys things")
CHANGED = replace(TOOL, description="buys things, and tells everybody")


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@contextlib.asynccontextmanager
async def two_replicas() -> AsyncIterator[tuple[hosts.Hosts, SharedPins, SharedPins]]:
    async with hosts.running() as found, hosts.linked(found) as one, hosts.linked(found) as two:
        yield found, SharedGateway(one, Policy()).pins, SharedGateway(two, Policy()).pins


async def test_a_definition_that_one_replica_has_seen_is_known_to_all_and_later() -> None:
    async with two_replicas() as (found, one, two):
        assert await one.review(TOOL, digest(TOOL), "allow") == "fine"
        assert await two.review(TOOL, digest(TOOL), "ask") == "fine"
        assert await two.review(CHANGED, digest(CHANGED), "ask") == "ask"
        await found.stop()
        await found.start()
        assert await two.review(CHANGED, digest(CHANGED), "ask") == "ask"
        await two.approve(CHANGED, digest(CHANGED))
        assert await one.review(CHANGED, digest(CHANGED), "ask") == "fine"
        # Back again is another change, of which a person who has said yes is asked whatever it is.
        assert await one.review(replace(TOOL), digest(TOOL), "allow") == "ask"


async def test_what_the_rules_allow_plainly_is_told_once_for_all_replicas() -> None:
    async with two_replicas() as (_, one, two):
        await one.review(TOOL, digest(TOOL), "allow")
        assert await two.review(CHANGED, digest(CHANGED), "allow") == "warn"
        assert await one.review(CHANGED, digest(CHANGED), "allow") == "fine"


async def test_without_the_gateway_only_what_was_fine_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gateway_link, "PATIENCE", 0.1)
    async with two_replicas() as (found, one, _):
        await one.review(TOOL, digest(TOOL), "allow")
        await found.stop()
        assert await one.review(TOOL, digest(TOOL), "allow") == "fine"
        with pytest.raises(ToolFailed, match="so no call was made"):
            await one.review(CHANGED, digest(CHANGED), "allow")
