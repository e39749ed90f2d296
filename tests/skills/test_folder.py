"""Folders of skills: nothing outside of them is read, nothing is written elsewhere."""

import os
from pathlib import Path

import pytest

from divingbell.errors import SkillMissing, SkillRefused
from divingbell.skills import folder, names, skill_file
from tests.skills.samples import made


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return folder.write(made(), tmp_path)


def test_a_folder_is_read_as_it_was_written(written: Path) -> None:
    assert folder.read(written) == made()
    assert not [each for each in written.parent.iterdir() if each != written]


def test_what_lies_about_is_left_out(written: Path) -> None:
    (written / ".git").mkdir()
    (written / "scripts/__pycache__").mkdir()
    (written / "scripts/__pycache__/a.pyc").write_bytes(b"x")
    assert folder.read(written).digest == made().digest


@pytest.mark.parametrize("where", ["scripts/link.py", "link", "references", "SKILL.md"])
def test_a_link_in_it_is_refused(written: Path, where: str) -> None:
    (written / where).unlink(missing_ok=True)
    (written / where).symlink_to("/etc" if where == "references" else "/etc/passwd")
    with pytest.raises(SkillRefused, match="a link or a special file"):
        folder.read(written)


def test_a_pipe_in_it_is_refused_and_not_waited_for(written: Path) -> None:
    os.mkfifo(written / "scripts/pipe")
    with pytest.raises(SkillRefused, match="special file"):
        folder.read(written)


def test_a_link_as_the_folder_is_refused(written: Path) -> None:
    link = written.parent / "link"
    link.symlink_to(written)
    with pytest.raises(SkillRefused, match="it is a link"):
        folder.read(link)


@pytest.mark.parametrize("there", ["link", "folder", "file", "nowhere"])
def test_nothing_is_written_over_or_through_a_link(tmp_path: Path, there: str) -> None:
    target, other = tmp_path / "top-customers", tmp_path / "other"
    other.mkdir()
    if there == "folder":
        target.mkdir()
    elif there == "file":
        target.write_text("mine")
    else:
        target.symlink_to(other if there == "link" else tmp_path / "none")
    with pytest.raises(SkillRefused, match="exists already"):
        folder.write(made(), tmp_path)
    assert not list(other.iterdir())


def test_a_link_as_the_target_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(SkillRefused, match="it is a link"):
        folder.write(made(), tmp_path / "link")


def test_more_than_a_skill_may_have_is_refused_early(
    written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MAX_ENTRIES", 20)
    for number in range(30):
        (written / f"{number}.txt").touch()
    with pytest.raises(SkillRefused, match="more than 20"):
        folder.read(written)


def test_a_large_file_is_refused(written: Path) -> None:
    with (written / "large").open("wb") as file:
        file.truncate(skill_file.MAX_FILE + 1)
    with pytest.raises(SkillRefused, match="larger than"):
        folder.read(written)


def test_folders_without_end_are_refused(written: Path) -> None:
    written.joinpath(*["a"] * (names.MAX_DEPTH + 1)).mkdir(parents=True)
    with pytest.raises(SkillRefused, match="deep"):
        folder.read(written)


def test_the_folder_has_the_name_of_the_skill(written: Path) -> None:
    with pytest.raises(SkillRefused, match="one name for both"):
        folder.read(written.rename(written.with_name("another")))


def test_no_folder_and_no_skill_file_are_told_apart_from_bad_ones(tmp_path: Path) -> None:
    with pytest.raises(SkillMissing, match="there is no folder"):
        folder.read(tmp_path / "none")
    with pytest.raises(SkillMissing, match=r"there is no SKILL.md"):
        folder.read(tmp_path)


def test_skills_are_found_right_below_a_folder(written: Path) -> None:
    above = written.parent
    folder.write(made("another"), above)
    (above / "notes").mkdir()
    (above / "link").symlink_to(written)
    assert folder.find(above) == [above / "another", written]
    assert folder.find(written) == [written]


def test_scripts_that_say_what_runs_them_can_be_executed_where_they_are_written(
    tmp_path: Path,
) -> None:
    files = {"scripts/run.sh": b"#!/bin/sh\n", "scripts/data": b"x", "assets/a.sh": b"#!/bin/sh\n"}
    written = folder.write(skill_file.make("pdf", "Fills forms.", files=files), tmp_path)
    runs = [path for path in files if (written / path).stat().st_mode & 0o111]
    assert runs == ["scripts/run.sh"]
