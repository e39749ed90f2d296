"""For all tests of more than one machine: two nodes, and a front whose sessions are on them; and a
Ray cluster, for all of its tests."""

from collections.abc import AsyncIterator, Iterator

import pytest

from divingbell import Divingbell
from tests.libraries import need
from tests.scale import nodes, ray_machines
from tests.scale.ray_machines import Machines


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


@pytest.fixture(scope="session")
def machines() -> Iterator[Machines]:
    need("ray")
    with ray_machines.running() as machines:
        yield machines
