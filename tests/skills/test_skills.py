"""The skills of a program: all that changes is told to the journal."""

from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.errors import SkillMissing, SkillRefused
from divingbell.events import JournalEvent, SkillChanging, SkillRemoved, SkillSaved
from divingbell.models import Limits
from divingbell.review.reviewer import Reviewer
from divingbell.settings.review import ReviewSettings
from divingbell.skills import folder
from divingbell.skills import skills as taking_over
from divingbell.skills.sharing import Sharing
from divingbell.skills.skills import Skills
from divingbell.skills.store import Stores
from tests.skills.samples import made

ANOTHER = b"---\nname: pdf\ndescription: Reads PDFs.\nmodel: large\n---\n# How\n"


@pytest.fixture
def told() -> list[JournalEvent]:
    return []


@pytest.fixture
def skills(tmp_path: Path, told: list[JournalEvent]) -> Skills:
    return skills_in(tmp_path, told)


def skills_in(data: Path, told: list[JournalEvent]) -> Skills:
    stores = Stores(data / "kept")
    shared = Sharing(data, stores, Reviewer(ReviewSettings()), Limits())
    return Skills(stores, told.append, shared)


async def test_what_comes_and_goes_is_told(skills: Skills, told: list[JournalEvent]) -> None:
    await skills.add(made(), user="anna")
    await skills.add(made(code="def run():\n    return 2\n"), user="anna")
    kept = await skills.rollback("top-customers", user="anna")
    assert (kept.version, kept.current) == (1, True)
    assert len(await skills.versions("top-customers", user="anna")) == 2
    assert await skills.remove("top-customers", user="anna") == 2
    saved = [event for event in told if isinstance(event, SkillSaved)]
    assert [(each.version, each.origin) for each in saved] == [
        (1, "added"), (2, "added"), (1, "rollback"),
    ]  # fmt: skip
    assert saved[0].digest == made().digest
    assert isinstance(told[-1], SkillRemoved) and told[-1].principal.user == "anna"


async def test_a_user_has_nothing_of_another(skills: Skills) -> None:
    await skills.add(made(), user="anna")
    assert [each.name for each in await skills.list(user="anna")] == ["top-customers"]
    for other in (None, "bob", "Anna"):
        assert await skills.list(user=other) == []
        assert await skills.search("top customers", user=other) == []
        for ask in (skills.get, skills.versions, skills.rollback, skills.remove):
            with pytest.raises(SkillMissing):
                await ask("top-customers", user=other)


async def test_code_that_never_ran_here_is_said_to_be_untried(skills: Skills) -> None:
    kept = await skills.add(made())
    assert kept.record.state == "untried" and kept.record.replaced > 5
    assert [each.name for each in await skills.search("customers")] == ["top-customers"]


async def test_skills_of_another_agent_are_taken_over_as_they_are(
    skills: Skills, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "pdf").mkdir(parents=True)
    (theirs / "pdf/SKILL.md").write_bytes(ANOTHER)
    folder.write(made(), theirs)
    (theirs / "README.md").write_text("Not a skill.")
    kept = await skills.import_folder(theirs)
    assert [(each.skill.name, each.record.state) for each in kept] == [
        ("pdf", "ready"), ("top-customers", "untried"),
    ]  # fmt: skip
    (tmp_path / "out").mkdir()
    written = await skills.export("pdf", tmp_path / "out")
    assert (written / "SKILL.md").read_bytes() == ANOTHER
    with pytest.raises(SkillRefused, match="exists already"):
        await skills.export("pdf", tmp_path / "out")


async def test_of_a_folder_with_a_bad_one_none_is_taken_over(
    skills: Skills, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    folder.write(made(), theirs)
    (theirs / "bad").mkdir()
    (theirs / "bad/SKILL.md").write_text("no head")
    with pytest.raises(SkillRefused, match=r"nothing was taken over: bad: SKILL.md has no head"):
        await skills.import_folder(theirs)
    assert await skills.list() == []


@pytest.mark.parametrize("there", [False, True])
async def test_a_folder_without_skills_is_said(skills: Skills, tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "theirs").mkdir()
    with pytest.raises(SkillMissing):
        await skills.import_folder(tmp_path / "theirs")


async def test_a_divingbell_has_them(bell: Divingbell) -> None:
    user = "test_a_divingbell_has_them"
    seen: list[JournalEvent] = []
    stop = bell.journal.watch(seen.append)
    await bell.skills.add(made(), user=user)
    stop()
    assert [type(event) for event in seen] == [SkillChanging, SkillSaved]
    assert [each.name for each in await bell.skills.list(user=user)] == ["top-customers"]


async def test_ten_thousand_skills_are_taken_over_at_once(skills: Skills, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    for number in range(10_000):
        (theirs / f"skill-{number}").mkdir(parents=True)
        (theirs / f"skill-{number}/SKILL.md").write_text(
            f"---\nname: skill-{number}\ndescription: Does number {number}.\n---\n"
        )
    assert len(await skills.import_folder(theirs)) == len(await skills.list()) == 10_000
    [best] = await skills.search("number 4321", 1)
    assert best.name == "skill-4321"
    with pytest.raises(SkillRefused, match="10,000 skills"):
        await skills.add(made())


async def test_more_than_fits_into_memory_is_not_read(
    skills: Skills, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking_over, "MAX_AT_ONCE", 1_000)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in ("first", "second"):
        folder.write(made(name, "x" * 600), theirs)
    with pytest.raises(SkillRefused, match="some of them at a time"):
        await skills.import_folder(theirs)
    assert await skills.list() == []


async def test_a_program_shares_skills_as_a_person_does(skills: Skills, tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue"
    catalogue.mkdir()
    theirs = skills_in(tmp_path / "another machine", [])
    await skills.add(made(), user="ann")
    done = await skills.publish("top-customers", str(catalogue), user="ann")
    assert done.is_new and done.statement.version == 1
    with pytest.raises(SkillRefused, match="sha256='sha256:"):
        await theirs.install("top-customers", str(catalogue), user="bob")
    digest = made().digest
    kept = await theirs.install("top-customers", str(catalogue), sha256=digest, user="bob")
    assert kept.record.origin == "catalogue" and kept.skill.digest == digest
    again = await theirs.install("top-customers", str(catalogue), user="bob")
    assert again.version == kept.version, "it is there already"
    assert await theirs.update(user="bob") == []
    await skills.add(made(code='def top_customers():\n    """Newer."""\n'), user="ann")
    await skills.publish("top-customers", str(catalogue), user="ann")
    [newer] = await theirs.update("top-customers", user="bob")
    assert newer.version == 2 and "Newer" in (newer.skill.code or "")
    with pytest.raises(SkillMissing):
        await theirs.update("no-such-skill", user="bob")
