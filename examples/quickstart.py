"""The library in twenty lines: run code, see what came of it, find the state in the next run."""

import asyncio

from divingbell import Divingbell


async def main() -> None:
    async with Divingbell() as bell, bell.session(timeout=10, memory="256MB") as session:
        await session.run("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2, 39]})")
        result = await session.run("print('rows:', len(df))\ndf.a.sum()")
        print(result.status, result.value)  # ok 42
        print(result.to_dict()["output"], end="")  # what was printed, and the value

        failed = await session.run("df.b")  # the code's failure is a result, no exception
        print(failed.status, failed.error and failed.error.type)  # error AttributeError

        stopped = await session.run("while True: pass", timeout=0.5)
        print(stopped.status, (await session.run("len(df)")).value)  # timeout 3: df is still there


asyncio.run(main())
