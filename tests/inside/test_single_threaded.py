"""DuckDB in a session starts no threads, so that its variables can be copied."""

import pytest

from divingbell import Divingbell, Session

CODE = """
import duckdb, os
def threads():
    return len(os.listdir("/proc/self/task"))
duckdb.sql("COPY (SELECT range FROM range(100000)) TO '/workspace/x.parquet'")
found = [len(duckdb.sql("FROM '/workspace/x.parquet'").fetchall()), threads()]
with duckdb.connect("/workspace/x.db") as database:
    database.execute("CREATE TABLE t AS SELECT 1")
with duckdb.connect("/workspace/x.db", read_only=True) as database:
    found += [database.execute("FROM t").fetchall(), threads()]
found += [duckdb.connect(":default:").execute("SELECT 2").fetchall(), threads()]
with duckdb.connect(config={"threads": 2}) as database:
    found.append(database.execute("SELECT current_setting('threads')").fetchall())
found
"""
EXPECTED = [100_000, 1, [(1,)], 1, [(2,)], 1, [(2,)]]


async def test_duckdb_has_one_thread_unless_it_is_told_otherwise(session: Session) -> None:
    assert (await session.run(CODE)).value == EXPECTED


async def test_it_is_the_same_where_it_was_loaded_beforehand() -> None:
    async with Divingbell(preload=("duckdb",), pool=0) as bell, bell.session() as session:
        assert (await session.run(CODE)).value == EXPECTED


@pytest.mark.parametrize("code", ["duckdb.__file__", "__import__('inspect').getsource(duckdb)"])
async def test_the_module_is_what_it_was(session: Session, code: str) -> None:
    result = await session.run(f"import duckdb; bool({code})")
    assert result.value is True
