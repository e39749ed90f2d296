"""A thousand expenses are filtered and summed, and the model reads four lines.

The server is mcp-server-sqlite; ask_many_rows.json starts it with `uvx`, and EXAMPLE_MCP_CONFIG
names another mcp.json.
"""

import asyncio
import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from conversation import model_of, show

from divingbell import Divingbell
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says

CONFIG = os.environ.get("EXAMPLE_MCP_CONFIG") or str(Path(__file__).with_suffix(".json"))
TEAMS = ("boats", "pumps", "ropes")
CODE = """
import ast
import pandas as pd
from servers.sqlite import read_query

expenses = pd.DataFrame(ast.literal_eval(read_query("SELECT * FROM expenses")))
travel = expenses[expenses.kind == "travel"]
print(travel.groupby("team").amount.sum())
"""
SCRIPT = [
    Says("I add them up in code.", CODE),
    Says("Travel has cost boats the most: 16,665 of 49,804."),
]


def make_expenses(path: Path) -> None:
    kinds = ("travel", "food", "tools", "rent")
    rows = [(TEAMS[n % 3], kinds[n % 4], 100 + n % 201) for n in range(1_000)]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE expenses (team TEXT, kind TEXT, amount INTEGER)")
        database.executemany("INSERT INTO expenses VALUES (?, ?, ?)", rows)


async def main(folder: str) -> None:
    os.environ["EXAMPLE_FOLDER"] = folder
    make_expenses(Path(folder, "expenses.db"))
    async with Divingbell(mcp_config=CONFIG) as bell, bell.session() as session:
        agent = await open_agent(bell, session, model_of(SCRIPT), mode="code")
        done = await show(agent, "Which team has spent the most on travel?")
    print(f"{done.turns} turns, {done.total.input_tokens:,} tokens read")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
