"""Personal columns of tables are learned from, so that what code prints of them has tokens."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import Client

from divingbell import Divingbell, Session
from divingbell.border.privacy.fields import Fields
from divingbell.datasets import datasets
from divingbell.datasets.opening import opened
from divingbell.datasets.personal_columns import PersonalColumns
from divingbell.datasets.sealed_reader import default_limits
from divingbell.gateway import spooled_tables
from divingbell.settings.config import Settings
from tests import walls
from tests.datasets import making

WALLS = (walls.LOCAL, walls.DOCKER, walls.GVISOR)
ROWS = 3_000
LINES = '{"customer": {"first_name": "Sunniva", "total": 3}}\n{"customer": {"total": 4}}\n'


def _people() -> str:
    rows = (f"{row},Given{row:05},{row} Long Lane,Oslo,Helper{row % 7:03}" for row in range(ROWS))
    return "\n".join(("id,first_name,street,city,helped_by", *rows, ""))


@pytest.fixture(scope="module", params=WALLS, ids=lambda wall: wall.name)
async def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Session]:
    walls.need(request.param)
    name = request.param.name
    folder = tmp_path_factory.mktemp("people")
    (folder / "people.csv").write_text(_people())
    (folder / "lines.jsonl").write_text(LINES)
    (folder / "guests.csv").write_text("first_name,city\nChiamaka,Lagos\n")
    making.readable(folder)
    rules = {"fields": {"data.*.helped_by": "person"}}
    servers = {"data": {"datasets": str(folder)}}
    async with (
        Divingbell(
            backend=name,
            backend_minimum=name,
            privacy="personal",
            privacy_rules=rules,
            servers=servers,
        ) as bell,
        bell.session() as session,
    ):
        yield session


async def shown(session: Session, code: str) -> str:
    result = await session.run(f"from servers.data import *\n{code}")
    assert result.status == "ok", result.error
    return result.text


async def test_names_far_down_in_a_table_are_hidden_wherever_code_prints_them(
    session: Session,
) -> None:
    text = await shown(
        session,
        "people = import_dataset('people')\n"
        "last = people.iloc[-1]\n"
        "print('so', last.first_name, 'lives in', last.street, 'of', last.city)",
    )
    assert "Given" not in text and "Long Lane" not in text
    assert "[NAME_" in text and "[ADDRESS_" in text and "Oslo" in text
    # The rows are those of the table: nothing in the sandbox has changed.
    assert "2999 True" in await shown(
        session, "print(people.id.iloc[-1], people.first_name.iloc[-1].startswith('Giv'))"
    )


async def test_a_column_that_the_settings_name_is_learned(session: Session) -> None:
    code = "some = import_dataset('people', columns=['id', 'helped_by'], limit=7)\n"
    text = await shown(session, code + "print('by', some.helped_by.iloc[6])")
    assert "Helper" not in text and "[NAME_" in text


async def test_what_a_query_gives_is_learned_by_the_names_of_its_columns(session: Session) -> None:
    sql = "SELECT concat('ZOELLA', id) AS last_name FROM people ORDER BY id LIMIT 3"
    text = await shown(session, f'print("it is", query_dataset("{sql}").last_name.iloc[2])')
    assert "ZOELLA" not in text and "[NAME_" in text


async def test_a_date_of_birth_is_hidden_as_a_value_too(session: Session) -> None:
    code = "born = query_dataset(\"SELECT DATE '1984-03-02' AS dob\").dob.iloc[0]\n"
    values = "[born, born.date(), {born.date(): 1}, born.isoformat()]"
    result = await session.run(f"from servers.data import *\n{code}print(born)\n{values}")
    assert result.status == "ok", result.error
    assert "1984" not in str(result.value) and "1984" not in result.text
    assert "1984" not in str(result.to_dict()["value"])


async def test_fields_within_a_column_are_learned(session: Session) -> None:
    text = await shown(
        session, "print('first', import_dataset('lines').customer.iloc[0]['first_name'])"
    )
    assert "Sunniva" not in text and "[NAME_" in text


async def test_what_breaks_off_leaves_no_values_in_the_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, spool = tmp_path / "data", tmp_path / "spool"
    folder.mkdir()
    spool.mkdir(mode=0o700)
    (folder / "guests.csv").write_text("first_name,city\nChiamaka,Lagos\n")
    making.readable(folder)
    told = {"server": "data", "fields": {}, "kinds": ["NAME"]}
    (spool / spooled_tables.RULES).write_text(json.dumps(told))
    settings = Settings(backend="local", limits=default_limits())
    async with opened(folder, settings, spool=spool) as (made, _), Client(made.server) as client:
        whole = await client.call_tool("import_dataset", {"name": "guests"})
        assert not whole.is_error
        left = {path.suffix: path for path in spool.iterdir() if path.name != spooled_tables.RULES}
        assert b"Chiamaka" in left.pop(spooled_tables.VALUES).read_bytes() and len(left) == 1
        before = set(spool.iterdir())
        monkeypatch.setattr(datasets, "MOST_VALUES", 3)
        for given in ({}, {"columns": ["first_name"]}):  # as it is kept, and made anew
            refused = await client.call_tool("import_dataset", {"name": "guests", **given})
            assert refused.is_error and "without end" in str(refused.content)
        assert set(spool.iterdir()) == before


async def test_without_privacy_nothing_is_asked_for(tmp_path: Path) -> None:
    assert PersonalColumns.told_in(tmp_path) is None


def test_a_table_without_personal_columns_costs_no_second_request() -> None:
    personal = PersonalColumns("data", Fields({"data.*.price": "NAME"}))
    columns = [{"name": "id", "type": "BIGINT"}, {"name": "city", "type": "VARCHAR"}]
    assert personal.request("import_dataset", columns, ["/x", "parquet", None]) is None
    asked = personal.request("import_dataset", [{"name": "price", "type": "DOUBLE"}], [])
    assert asked is not None and asked["columns"] == ["price"]


async def test_a_description_shows_no_values_of_personal_columns(session: Session) -> None:
    text = await shown(session, "print(describe_dataset('guests'))")
    assert "Chiamaka" not in text
    assert "first_name" in text and "Lagos" in text


def test_values_that_nobody_knows_by_their_shape_come_first() -> None:
    personal = PersonalColumns("data", Fields({}))
    columns = [{"name": name, "type": "VARCHAR"} for name in ("email", "first_name", "street")]
    asked = personal.request("import_dataset", columns, [])
    assert asked is not None and asked["columns"] == ["first_name", "street", "email"]


def test_the_log_says_of_how_many_columns_nothing_is_learned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    personal = PersonalColumns("data", Fields({"data.*.c*": "NAME"}))
    columns = [{"name": f"c{number}", "type": "VARCHAR"} for number in range(33)]
    assert personal.request("import_dataset", columns[:32], []) is not None
    assert not caplog.records
    asked = personal.request("import_dataset", columns, [])
    assert asked is not None and len(asked["columns"]) == 32
    assert "1 columns more" in caplog.text
