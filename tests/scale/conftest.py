"""For all tests of more than one machine: two nodes, and a front whose sessions are on them."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from tests.scale import nodes


@pytest.fixture(scope="session")
async def two_nodes() -> AsyncIterator[list[nodes.RunningNode]]:
    async with nodes.running(
        "north", "south", DIVINGBELL_PRELOAD="numpy,pandas,matplotlib.pyplot"
    ) as found:
        yield found


@pytest.fixture(scope="session")
async def bell(two_nodes: list[nodes.RunningNode]) -> AsyncIterator[Divingbell]:
    async with nodes.front(*(node.address for node in two_nodes)) as bell:
        yield bell
