"""Calls of tools, made by code on a node: the gateway is in this process, as are its tests."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell, Session
from tests.gateway.galley import galley
from tests.scale import nodes
from tests.scale.taking_over import taken_from
from tests.session import test_calls


@pytest.fixture(scope="module")
async def kitchen(two_nodes: list[nodes.RunningNode]) -> AsyncIterator[Divingbell]:
    with nodes.used(nodes.FixedCluster([node.address for node in two_nodes])):
        async with galley(backend="ray") as (bell, _):
            yield bell


@pytest.fixture
async def session(kitchen: Divingbell) -> AsyncIterator[Session]:
    async with kitchen.session(user="ann") as session:
        yield session


globals().update(taken_from(test_calls))
