"""Give files to a session, and take files from it."""

import asyncio

from divingbell import Divingbell

SALES = "city,units\nOslo,12\nLima,7\nOslo,9\n"
CODE = """
import pandas as pd
totals = pd.read_csv("sales.csv").groupby("city").units.sum()
totals.to_csv("totals.csv")
"""


async def main() -> None:
    async with Divingbell() as bell, bell.session() as session:
        await session.files.put("sales.csv", SALES)  # text, bytes, a Path or an open file
        result = await session.run(CODE)
        print(result.status)
        for file in await session.files.list():
            print(f"{file.path}: {file.size} bytes")
        print((await session.files.get("totals.csv")).decode(), end="")


asyncio.run(main())
