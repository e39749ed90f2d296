"""The code of docs/skills.md runs as it is written there."""

import re
import runpy
from pathlib import Path

import pytest
import skills_ref

from divingbell import Divingbell, HostFunction
from divingbell.skills import folder, skill_file
from divingbell.skills.store import Stores

PAGE = Path(__file__).parents[2] / "docs" / "skills.md"
EXAMPLE = PAGE.parents[1] / "examples" / "skill.py"
SAVED, USED, BY_PATH = re.findall(r"^```py\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
ORDERS = [{"customer": name, "total": total} for name, total in (("Lima", 12), ("Oslo", 31))]


def list_orders(status: str) -> list[dict[str, object]]:
    """Orders of a status."""
    return ORDERS if status == "paid" else []


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


async def test_what_one_session_has_solved_a_later_one_uses_and_others_install(
    tmp_path: Path,
) -> None:
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    async with Divingbell(skills="on", pool=1, tools=[HostFunction(list_orders)]) as bell:
        # The page's server is one of its own; a function of the program is called the same way.
        saving = SAVED.replace("servers.shop", "servers.host")
        async with bell.session(user="ann") as session:
            saved = await session.run(saving)
            assert saved.status == "ok", saved.text + str(saved.error)
            assert "from skills import top_customers" in saved.text
        await _uses_it(bell, "ann")
        async with bell.session(user="bob") as other:
            assert (await other.run(USED)).status == "error"
        said = (await bell.skills.publish("top_customers", str(catalogue), user="ann")).statement
        assert skills_ref.validate(catalogue / "top-customers") == []
        kept = await bell.skills.install(
            "top_customers", str(catalogue), sha256=said.digest, user="bob"
        )
        assert kept.skill == (await bell.skills.get("top_customers", user="ann")).skill
        await _uses_it(bell, "bob")


async def _uses_it(bell: Divingbell, user: str) -> None:
    async with bell.session(user=user) as session:
        used = await session.run(USED)
        assert used.status == "ok", str(used.error)
        assert used.value == [ORDERS[1], ORDERS[0]]


async def test_the_skill_of_the_example_is_in_the_format(tmp_path: Path) -> None:
    await runpy.run_path(str(EXAMPLE))["main"]()
    skill = Stores(tmp_path / "divingbell/skills").of("ann").get("top-customers").skill
    assert skills_ref.validate(folder.write(skill, tmp_path)) == []


async def test_a_skill_of_another_agent_runs_by_its_path() -> None:
    fill = "import sys\nprint('filled', sys.argv[1])\n"
    skill = skill_file.make("pdf", "Fills forms.", "# Forms", {"scripts/fill.py": fill.encode()})
    async with Divingbell(skills="on", pool=1) as bell:
        await bell.skills.add(skill, user="ann")
        async with bell.session(user="ann") as session:
            ran = await session.run(BY_PATH)
            assert ran.status == "ok", str(ran.error)
            assert ran.text.startswith("---\nname: pdf\n") and "filled form.pdf" in ran.text
