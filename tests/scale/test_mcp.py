"""What clients of the MCP server see, with sessions on nodes: the same tests, in both eras."""

from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell
from tests import real_servers
from tests.scale import nodes
from tests.scale.taking_over import taken_from
from tests.surfaces.mcp import test_limits, test_server
from tests.surfaces.mcp.conftest import POLICY, client, era, listener, surface  # noqa: F401


@pytest.fixture(scope="module")
async def bell_with_shop(two_nodes: list[nodes.RunningNode]) -> AsyncIterator[Divingbell]:
    command, arguments = real_servers.fixture("workshop")
    async with nodes.front(
        *(node.address for node in two_nodes),
        service={"drain_timeout": 0.5},
        servers={"shop": {"command": command, "args": arguments}},
        policy=POLICY,
    ) as bell:
        yield bell


for _module in (test_limits, test_server):
    globals().update(taken_from(_module, given=("client", "surface", "bell_with_shop")))
