"""Calls of tools, made by code on a node: the gateway is in this process, as are its tests."""

from collections.abc import AsyncIterator

import pytest
from mcp_types import ElicitRequestParams, ElicitResult

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


class Person:
    """Behind one front: paints in a colour of theirs."""

    def __init__(self, colour: str) -> None:
        self.colour = colour

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"colour": self.colour})


async def test_a_question_reaches_the_person_behind_the_front_that_runs_the_cell(
    two_nodes: list[nodes.RunningNode], kitchen: Divingbell
) -> None:
    people = {"blue": Person("blue"), "red": Person("red")}
    with nodes.used(nodes.FixedCluster([node.address for node in two_nodes])):
        async with (
            galley(backend="ray") as (other, _),
            kitchen.session("shared", user="ann") as blue,
            other.session("shared", user="ann") as red,
        ):
            assert blue.key == red.key
            for colour, session in (("blue", blue), ("red", red), ("blue", blue)):
                # Both have a person; the front that asks last has run a cell in between.
                result = await session.run("servers.galley.paint('it')", asker=people[colour])
                assert result.value == f"it is {colour}"


globals().update(taken_from(test_calls))
