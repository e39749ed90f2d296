"""The shortest proof that it works, for every Python that is supported."""

from divingbell import Divingbell


async def test_a_session_runs_pandas_draws_and_is_sealed() -> None:
    async with Divingbell() as bell, bell.session("smoke", user="someone") as session:
        assert (await session.run("x = 20\nx + 22")).value == 42
        code = "import pandas as pd; int(pd.DataFrame({'a': [1, 2]}).a.sum())"
        assert (await session.run(code)).value == 3
        plot = await session.run("import matplotlib.pyplot as plt\nplt.plot([x, 2]);")
        assert [output.type for output in plot.outputs] == ["image/png"]
        result = await session.run("import socket\nsocket.create_connection(('192.0.2.1', 80), 1)")
        assert result.status == "error"
        assert (await session.run("while True: pass", timeout=0.3)).status == "timeout"
        assert (await session.run("1/0")).error is not None
        assert (await session.run("await __import__('asyncio').sleep(0, x)")).value == 20
        await session.run("import os; os._exit(1)")
        assert (await session.run("!echo alive")).text == "alive\n"
        await session.files.put("in.txt", "hello")
        assert await session.files.get("in.txt") == b"hello"
