"""The page about the API: its program in Python runs as it stands."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.surfaces.http.serving import ANNE, Site

PAGE = Path(__file__).parents[2] / "docs/api.md"


async def test_the_program_of_the_page_runs(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [program] = [block for block in blocks if "asyncio.run" in block]
    shown = "".join(f"{line}\n" for line in re.findall(r"# → (.*)", program))
    program = program.replace("http://localhost:8642", site.url)
    await asyncio.to_thread(exec, program, {"TOKEN": ANNE, "__name__": "__main__"})
    assert capsys.readouterr().out == shown
