"""The code of docs/skills.md runs as it is written there."""

import re
from pathlib import Path

import pytest

from divingbell import Divingbell, HostFunction
from divingbell.skills import skill_file

PAGE = Path(__file__).parents[2] / "docs" / "skills.md"
SAVED, USED, BY_PATH = re.findall(r"^```py\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
ORDERS = [{"customer": name, "total": total} for name, total in (("Lima", 12), ("Oslo", 31))]


def list_orders(status: str) -> list[dict[str, object]]:
    """Orders of a status."""
    return ORDERS if status == "paid" else []


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


async def test_one_session_saves_it_and_a_later_one_uses_it() -> None:
    async with Divingbell(skills="on", pool=1, tools=[HostFunction(list_orders)]) as bell:
        # The page's server is one of its own; a function of the program is called the same way.
        saving = SAVED.replace("servers.shop", "servers.host")
        async with bell.session(user="ann") as session:
            saved = await session.run(saving)
            assert saved.status == "ok", saved.text + str(saved.error)
            assert "from skills import top_customers" in saved.text
        async with bell.session(user="ann") as later:
            used = await later.run(USED)
            assert used.status == "ok", str(used.error)
            assert used.value == [ORDERS[1], ORDERS[0]]


async def test_a_skill_of_another_agent_runs_by_its_path() -> None:
    fill = "import sys\nprint('filled', sys.argv[1])\n"
    skill = skill_file.make("pdf", "Fills forms.", "# Forms", {"scripts/fill.py": fill.encode()})
    async with Divingbell(skills="on", pool=1) as bell:
        await bell.skills.add(skill, user="ann")
        async with bell.session(user="ann") as session:
            ran = await session.run(BY_PATH)
            assert ran.status == "ok", str(ran.error)
            assert ran.text.startswith("---\nname: pdf\n") and "filled form.pdf" in ran.text
