"""A Ray cluster whose machines go for good: it comes after all others that use it."""

import asyncio

import pytest

from divingbell import Divingbell
from tests.scale.ray_machines import START_TIMEOUT, Machines
from tests.scale.test_ray import apart, bell, commanded, node_of, overview, said, two_nodes
from tests.waiting import until

__all__ = ["bell"]
pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own code


async def test_a_node_that_is_drained_keeps_its_sessions_until_they_end(
    machines: Machines, bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIVINGBELL_RAY_ADDRESS", machines.address)
    monkeypatch.setenv("DIVINGBELL_BACKEND", "ray")
    session = await bell.open("last")
    name = node_of(session)
    draining = asyncio.create_task(commanded("nodes", "drain", name))

    async def drains() -> bool:
        return {node["name"]: node["state"] for node in await overview(bell)}[name] == "draining"

    await until(drains, "it is being drained")
    async with bell.session("elsewhere") as elsewhere:
        assert node_of(elsewhere) != name
    assert await said(session, "1") == "1"
    assert not draining.done()
    await bell.release(session)
    status, out = await draining
    assert status == 0 and f"{name} has ended." in out, out
    assert name not in {node["name"] for node in await overview(bell)}


async def test_a_machine_that_is_switched_off_is_noticed(
    machines: Machines, bell: Divingbell
) -> None:
    machines.add()
    await until(lambda: two_nodes(bell), "the new machine has a node", START_TIMEOUT)
    async with apart(bell) as (one, two):
        machines.kill(2)  # the one that was added last

        async def one_is_gone() -> bool:
            return [node["state"] for node in await overview(bell)] == ["up"]

        await until(one_is_gone, "its node is gone")
        results = [await session.run("1") for session in (one, two)]
        results += [await session.run("1") for session in (one, two)]
        assert sum(result.status == "ok" for result in results) >= 3
        assert node_of(one) == node_of(two)
