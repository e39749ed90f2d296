"""Ten thousand rows come from a database, and five reach the model.

The server is mcp-server-sqlite; many_rows.json starts it with `uvx`, and EXAMPLE_MCP_CONFIG names
another mcp.json.
"""

import asyncio
import os
import random
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from divingbell import Divingbell

CONFIG = os.environ.get("EXAMPLE_MCP_CONFIG") or str(Path(__file__).with_suffix(".json"))
CUSTOMERS = ("Akita", "Bergen", "Cusco", "Dakar", "Esbjerg")

# What a model would write. The server sends its rows as the text of a Python list.
CODE = """
import ast
import pandas as pd
from servers.sqlite import read_query

orders = pd.DataFrame(ast.literal_eval(read_query("SELECT * FROM orders")))
usual = orders.groupby("customer").amount.transform("median")
strange = orders[orders.amount > 20 * usual]
print(f"{len(orders):,} orders, {len(strange)} of them strange:")
print(strange.to_string(index=False))
"""


def make_orders(path: Path) -> None:
    """Ordinary orders, and five with a slipped decimal point."""
    chance = random.Random(1)
    rows = [
        (number, CUSTOMERS[number % 5], round(chance.uniform(40, 60), 2))
        for number in range(1, 10_001)
    ]
    for number in (97, 2_500, 4_321, 7_776, 9_999):
        rows[number - 1] = (number, rows[number - 1][1], round(rows[number - 1][2] * 100))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER, customer TEXT, amount REAL)")
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)


async def main(folder: str) -> None:
    os.environ["EXAMPLE_FOLDER"] = folder
    make_orders(Path(folder, "orders.db"))
    async with Divingbell(mcp_config=CONFIG) as bell:
        result = await bell.execute(CODE)
    print(result.text, end="")
    if result.error is not None:
        raise SystemExit(str(result.error))
    assert result.ledger is not None
    print(f"read by the model: {result.ledger.read:,} tokens")
    print(f"directly it would have been: {result.ledger.direct:,} tokens")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
