"""Datasets as code sees them: a call gives a DataFrame, and no row passes as JSON."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, Session
from divingbell.events import CallEnded
from tests import walls
from tests.datasets import making

WALLS = (walls.LOCAL, walls.DOCKER, walls.GVISOR)


@pytest.fixture(scope="module", params=WALLS, ids=lambda wall: wall.name)
def wall(request: pytest.FixtureRequest) -> str:
    walls.need(request.param)
    name: str = request.param.name
    return name


@pytest.fixture(scope="module")
async def diver(
    wall: str, tmp_path_factory: pytest.TempPathFactory, bell: Divingbell
) -> AsyncIterator[Divingbell]:
    """A Divingbell with a dataset server and a server of somebody else's."""
    folder = tmp_path_factory.mktemp("data")
    async with bell.session() as session:
        await making.make_folder(folder, session)
    liar = Path(__file__).parents[1] / "servers" / "file_namer.py"
    async with Divingbell(
        backend=wall,
        backend_minimum=wall,
        servers={
            "data": {"datasets": str(folder)},
            "liar": {"command": "python3", "args": [str(liar)]},
        },
    ) as diver:
        yield diver


@pytest.fixture
async def diving(diver: Divingbell) -> AsyncIterator[Session]:
    async with diver.session() as session:
        yield session


async def value(session: Session, code: str) -> Any:
    result = await session.run(code)
    assert result.status == "ok", result.error
    return result.value


async def failure(session: Session, code: str) -> str:
    result = await session.run(code)
    assert result.error is not None
    return result.error.message


async def test_an_import_is_a_frame_and_leaves_nothing_behind(diving: Session) -> None:
    code = """
from servers.data import import_dataset
import os, pandas
flights = import_dataset("flights")
[isinstance(flights, pandas.DataFrame), flights.shape, flights.delay.sum(),
 os.listdir("/workspace"), len(os.listdir("/proc/self/task"))]
"""
    assert await value(diving, code) == [True, (3, 4), 16, [], 1]


async def test_no_row_passes_as_json(diver: Divingbell) -> None:
    ended: list[CallEnded] = []
    stop = diver.journal.watch(lambda e: ended.append(e) if isinstance(e, CallEnded) else None)
    try:
        async with diver.session() as session:
            code = "from servers.data import import_dataset; len(import_dataset('items'))"
            assert await value(session, code) == 5000
    finally:
        stop()
    [call] = [each for each in ended if each.name == "data.import_dataset"]
    assert (call.outcome, call.body) == ("ok", b"")


async def test_queries_are_frames_and_side_by_side_too(diving: Session) -> None:
    code = """
import asyncio
from servers.data import query_dataset, import_dataset
first, second = await asyncio.gather(
    query_dataset("SELECT origin, sum(delay) AS delay FROM flights GROUP BY ALL ORDER BY origin"),
    import_dataset("items", columns=["id"], where="id < 3"),
)
[first.values.tolist()[0], second.id.tolist()]
"""
    assert await value(diving, code) == [["JFK", 16], [0, 1, 2]]


async def test_what_is_no_table_is_plain_data(diving: Session) -> None:
    code = (
        "from servers.data import describe_dataset; describe_dataset('tabs')['columns'][0]['name']"
    )
    assert await value(diving, code) == "a"


async def test_a_refusal_is_an_error_with_its_words(diving: Session) -> None:
    words = await failure(diving, "from servers.data import import_dataset; import_dataset('nope')")
    assert "there is no dataset 'nope'" in words
    assert "flights" in words


async def test_what_will_not_fit_is_refused_before_it_is_sent(diver: Divingbell) -> None:
    async with diver.session(memory="64MB") as session:
        code = (
            "from servers.data import query_dataset\n"
            "query_dataset('SELECT range, range::VARCHAR AS t FROM range(1000000)')"
        )
        words = await failure(session, code)
        assert "1,000,000 rows × 2 columns" in words
        assert "columns=[…]" in words
        assert await value(session, "import os; os.listdir('/workspace')") == []


async def test_a_server_of_others_names_no_files(diving: Session) -> None:
    code = "from servers.liar import give; give(how='raw')"
    assert await value(diving, code) == "a table"


async def test_the_spool_is_empty_afterwards(diver: Divingbell, diving: Session) -> None:
    await value(diving, "from servers.data import import_dataset; len(import_dataset('items'))")
    upstream = diver.gateway.fleet.upstream("data")
    assert upstream.spool is not None
    assert list(upstream.spool.iterdir()) == []
    assert diver.gateway.fleet.upstream("liar").spool is None
