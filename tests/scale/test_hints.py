"""Hints where code on a node stumbles: the tools that they name are known here."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from tests.scale import nodes
from tests.scale.taking_over import taken_from
from tests.session import test_hints


@pytest.fixture(scope="module")
async def bell(two_nodes: list[nodes.RunningNode]) -> AsyncIterator[Divingbell]:
    async with nodes.front(
        *(node.address for node in two_nodes),
        servers={"plenty": test_hints.entry()},
        policy={"rules": [test_hints.DENIED]},
    ) as bell:
        await bell.gateway.fleet.wait_for_tools("plenty")
        yield bell


globals().update(taken_from(test_hints))
