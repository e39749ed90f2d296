"""`divingbell skills publish`, `install` and `update`, as people run them."""

import re
import subprocess
from pathlib import Path

import pytest

from divingbell.host.login import login_name
from divingbell.skills.record import Record
from divingbell.skills.skill import Skill
from divingbell.skills.store import Store, Stores
from tests.skills.catalogues import clone, commit_all, repository
from tests.skills.samples import RECORD, made

from .command import Bell, runner
from .test_shell import ENTER, at_a_terminal

PAGE = Path(__file__).parents[3] / "docs" / "catalogues.md"
NAME = "top-customers"
OTHER = "def run():\n    return 2\n"


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    run = runner(tmp_path)

    def started(who: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run("skills", *arguments, XDG_DATA_HOME=str(tmp_path / who))

    return started


@pytest.fixture
def place(tmp_path: Path) -> str:
    return repository(tmp_path / "catalogue.git")


def store(folder: Path, user: str | None = None) -> Store:
    name = login_name() if user is None else user
    return Stores(folder / "divingbell/skills").of(name)


def published(bell: Bell, tmp_path: Path, place: str, skill: Skill) -> dict[str, str]:
    """Publish a skill as Ann; return what is said about it."""
    store(tmp_path / "ann").save(skill, RECORD)
    done = bell("ann", "publish", skill.name, "--to", place)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    return {line[0]: line[1] for line in lines}


def test_a_skill_goes_from_one_to_another(bell: Bell, tmp_path: Path, place: str) -> None:
    said = published(bell, tmp_path, place, made())
    alone = bell("bob", "install", NAME, "--from", place)
    assert alone.returncode == 2 and "there is no terminal to ask at" in alone.stderr
    for shown in (said["digest"], said["publisher"], "seen for the first time", "SKILL.md"):
        assert shown in alone.stdout
    assert f"--yes --sha256 {said['digest']}" in alone.stderr
    hasty = bell("bob", "install", NAME, "--from", place, "--yes")
    assert hasty.returncode == 2 and "--yes is not enough" in hasty.stderr
    wrong = bell("bob", "install", NAME, "--from", place, "--yes", "--sha256", "0" * 64)
    assert wrong.returncode == 2 and "not the one that was named" in wrong.stderr
    assert store(tmp_path / "bob").names() == []
    done = bell("bob", "install", NAME, "--from", place, "--yes", "--sha256", said["digest"])
    assert done.returncode == 0 and "installed as your version 1" in done.stdout
    assert store(tmp_path / "bob").get(NAME).record == Record(
        "catalogue",
        place,
        said["publisher"],
        state="untried",
        replaced=store(tmp_path / "bob").get(NAME).record.replaced,
    )


def test_updates_of_a_known_key_come_without_a_question(
    bell: Bell, tmp_path: Path, place: str
) -> None:
    key = published(bell, tmp_path, place, made())["publisher"]
    in_code = "top_customers"  # names are taken as they are written in code, too
    bell("bob", "install", in_code, "--from", place, "--yes", "--key", key, "--user", "bob")
    same = bell("bob", "update", in_code, "--yes", "--user", "bob")
    assert same.returncode == 0 and "installed already" in same.stdout
    published(bell, tmp_path, place, made(code=OTHER))
    done = bell("bob", "update", "--yes", "--user", "bob")
    assert done.returncode == 0 and "scripts/top_customers.py  changed" in done.stdout
    assert store(tmp_path / "bob", "bob").get(NAME).skill == made(code=OTHER)
    assert store(tmp_path / "bob").names() == []
    absent = bell("bob", "update", "absent")
    assert absent.returncode == 2 and "came from a catalogue" in absent.stderr


def test_a_history_that_was_rewritten_is_told_and_nothing_is_updated(
    bell: Bell, tmp_path: Path, place: str
) -> None:
    key = published(bell, tmp_path, place, made())["publisher"]
    bell("bob", "install", NAME, "--from", place, "--yes", "--key", key)
    work = clone(place, tmp_path / "work")
    (work / "README").write_text("new")
    commit_all(work, amend=True)
    done = bell("bob", "update", "--yes")
    assert done.returncode == 1 and "was rewritten" in done.stderr
    assert store(tmp_path / "bob").numbers(NAME) == [1]


def test_a_person_is_asked(bell: Bell, tmp_path: Path, place: str) -> None:
    published(bell, tmp_path, place, made())
    for answer, expected in (("n", []), ("y", [NAME])):
        words = ("skills", "install", NAME, "--from", place)
        with at_a_terminal(tmp_path, *words, XDG_DATA_HOME=str(tmp_path / "bob")) as screen:
            screen.expect("Install this? [y/N] ")
            screen.type(answer, ENTER)
            assert screen.leave() == (not expected)
        assert store(tmp_path / "bob").names() == expected


def test_the_commands_of_the_page_do_what_it_says(bell: Bell, tmp_path: Path, place: str) -> None:
    publishing, installing = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    (tmp_path / "catalogue").mkdir()
    places = {
        "../catalogue": str(tmp_path / "catalogue"),
        "git@example.org:team/skills.git": place,
        "https://example.org/team/skills.git": place,
    }

    def words_of(line: str) -> list[str]:
        return [places.get(word, word) for word in line.split()[2:]]

    def confirmed(line: str) -> None:
        words, home = ("skills", *words_of(line)), str(tmp_path / "bob")
        with at_a_terminal(tmp_path, *words, XDG_DATA_HOME=home) as screen:
            screen.expect("Install this? [y/N] ")
            screen.type("y", ENTER)
            assert screen.leave() == 0

    store(tmp_path / "ann").save(made(), RECORD)
    for line in publishing.splitlines():
        done = bell("ann", *words_of(line))
        assert done.returncode == 0, done.stderr
    install, update = installing.splitlines()
    confirmed(install)
    assert store(tmp_path / "bob").get(NAME).skill == made()
    store(tmp_path / "ann").save(made(code=OTHER), RECORD)
    assert bell("ann", *words_of(publishing.splitlines()[1])).returncode == 0
    confirmed(update)
    assert store(tmp_path / "bob").get(NAME).skill == made(code=OTHER)


@pytest.mark.parametrize("place", ["ext::sh -c x", "http://example.org/x", "/nowhere/at/all"])
def test_places_that_are_not_used(bell: Bell, place: str) -> None:
    done = bell("bob", "install", NAME, "--from", place)
    assert done.returncode == 2 and done.stderr.startswith("divingbell: ")


def test_no_key_is_taken_for_one(bell: Bell, place: str) -> None:
    done = bell("bob", "install", NAME, "--from", place, "--key", "AAAA")
    assert done.returncode == 2 and "32 bytes in base64" in done.stderr


def test_nothing_to_update_is_said(bell: Bell) -> None:
    assert "None of these skills came from a catalogue" in bell("bob", "update").stdout
    assert "--sha256" not in bell("bob", "update", "--help").stdout


def test_names_are_listed_once(bell: Bell, tmp_path: Path, place: str) -> None:
    published(bell, tmp_path, place, made())
    assert bell("bob", "install", "nope", "--from", place).stderr.count(NAME) == 1
