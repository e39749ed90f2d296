"""Sessions on a node of more than one machine, behind every wall that is made of containers."""

import pytest

from divingbell.sandbox import registry
from tests.scale import nodes
from tests.walls import CONTAINED, LOCAL, Wall, need


@pytest.mark.parametrize("wall", CONTAINED, ids=lambda wall: wall.name)
async def test_a_node_has_walls_of_its_own(wall: Wall) -> None:
    need(wall)
    settings = {"DIVINGBELL_NODE_BACKEND": wall.name, "DIVINGBELL_POOL": "0"}
    async with (
        nodes.running("walled", DIVINGBELL_PRELOAD="", **settings) as [node],
        # The walls of the node count, and not those that this machine would choose.
        nodes.front(node.address) as bell,
        bell.session() as session,
    ):
        assert session.isolation.backend == wall.name
        result = await session.run("import os\nopen('f', 'w').write('x')\nos.listdir()")
        assert (result.status, result.value) == ("ok", ["f"])
        assert await session.files.get("f") == b"x"
        await session.set("given", [1, 2])
        shown = [event.text async for event in session.stream("print(given)")]
        assert "[1, 2]\n" in shown
        assert (await session.run("1 / 0")).status == "error"


async def test_a_node_chooses_the_best_wall_that_its_machine_has() -> None:
    need(LOCAL)
    async with (
        nodes.running("choosing", DIVINGBELL_PRELOAD="", DIVINGBELL_NODE_BACKEND="auto") as [node],
        nodes.front(node.address) as bell,
        bell.session() as session,
    ):
        assert session.isolation.backend in {row.name for row in registry.OURS}
        assert (await session.run("6 * 7")).value == 42
