"""What a model is told of a session, with datasets that servers offer."""

from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.agent.inventory import inventory

pytestmark = pytest.mark.anyio


async def test_variables_files_and_datasets_are_named(bell: Divingbell, tmp_path: Path) -> None:
    (tmp_path / "sales of\x1b[2J may.csv").write_text("a\n1\n")
    (tmp_path / "shop.sqlite").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("no table")
    async with bell.session() as session:
        await session.run("n = [1, 2]; open('f.txt', 'w').write('x')")
        told = await inventory(session, {"data": str(tmp_path)})
        gone = await inventory(session, {"data": str(tmp_path / "nowhere")})
    assert told.splitlines() == [
        "variables:",
        "  n: list 2 items",
        "files:",
        "  /workspace/f.txt: 1 bytes",
        "datasets:",
        "  servers.data: sales_of_2J_may (csv, 4 bytes)",
        "  servers.data: list_datasets() names the tables of shop.sqlite (sqlite, 0 bytes)",
    ]
    assert "datasets" not in gone
