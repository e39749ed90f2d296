"""A folder with a dataset of each format, as people have them."""

import sqlite3
from pathlib import Path

from divingbell import Session

FLIGHTS = "origin,delay,carrier,at\nJFK,5,UA,2013-01-01\nLGA,NA,AA,2013-01-02\nJFK,11,,2013-01-03\n"
OTHER_FORMATS = """
import duckdb, openpyxl
duckdb.sql("COPY (SELECT range AS id, 'item ' || range AS name FROM range(5000)) "
           "TO '/workspace/items.parquet' (FORMAT parquet)")
book = openpyxl.Workbook()
book.active.title = "First quarter"
for row in (["month", "sales", "note"], [1, 10.5, "good"], [2, None, "NA"], [3, 7, "bad"]):
    book.active.append(row)
second = book.create_sheet("\\u202eSecond")
second.append(["a", "a"])
second.append([1, "x"])
book.save("/workspace/book.xlsx")
"""


async def make_folder(folder: Path, session: Session) -> None:
    """Fill a folder, which sessions of every kind of user can read."""
    folder.mkdir(exist_ok=True)
    (folder / "flights.csv").write_text(FLIGHTS)
    (folder / "tabs.tsv").write_text("a\tb\n1\tx y\n2\tz\n")
    (folder / "lines.jsonl").write_text('{"n": 1, "tags": ["a"]}\n{"n": 2, "tags": []}\n')
    result = await session.run(OTHER_FORMATS)
    assert result.status == "ok", result.error
    for name in ("items.parquet", "book.xlsx"):
        (folder / name).write_bytes(await session.files.get(name))
    with sqlite3.connect(folder / "shop.sqlite") as database:
        database.execute("CREATE TABLE orders (id INTEGER, total REAL, paid TEXT, odd INTEGER)")
        rows = [(1, 9.5, "yes", 1), (2, None, None, "two"), (3, 4, "no", 3)]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", rows)
        database.execute("CREATE TABLE people (name TEXT)")
    database.close()
    readable(folder)


def readable(folder: Path) -> None:
    """Let everyone read a folder of the tests, as folders with data usually can be."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
