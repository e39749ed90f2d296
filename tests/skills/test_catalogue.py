"""Catalogues in folders and in git repositories: published, installed, and what is refused."""

import json
import os
import shutil
from pathlib import Path

import pytest
import skills_ref

from divingbell.errors import ConfigError, SkillMissing, SkillRefused
from divingbell.settings.review import ReviewRules, ReviewSettings
from divingbell.skills import git_repository, skill_file, statement
from divingbell.skills.git_command import GitFailed
from divingbell.skills.git_repository import HistoryRewritten

from .catalogues import OURS, THEIRS, Reader, clone, commit_all, git, repository
from .samples import RECORD, made

NAME = "top-customers"
OTHER = "def run():\n    return 2\n"


@pytest.fixture(params=["folder", "git"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "git":
        return repository(tmp_path / "catalogue.git")
    (tmp_path / "catalogue").mkdir()
    return str(tmp_path / "catalogue")


@pytest.fixture
def publisher(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "publisher")


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "reader")


def by_hand(place: str, tmp_path: Path) -> Path:
    """The files of a catalogue, to be changed; `done` puts them back."""
    return clone(place, tmp_path / "work") if place.startswith("file:") else Path(place)


def done(place: str, work: Path) -> None:
    if place.startswith("file:"):
        commit_all(work)
        shutil.rmtree(work)


def test_what_is_published_is_installed_to_the_byte(
    place: str, publisher: Reader, reader: Reader
) -> None:
    skill = made()
    said = publisher.publish(skill, place)
    assert said.is_new and said.statement.version == 1
    kept = reader.install(place, NAME)
    assert kept.skill.all_files == skill.all_files and kept.skill.digest == skill.digest
    assert (kept.record.origin, kept.record.source) == ("catalogue", place)
    assert kept.record.key == OURS.public and kept.record.state == "untried"
    assert reader.store.get(NAME).skill == skill


def test_the_catalogue_is_plain_files(place: str, publisher: Reader, tmp_path: Path) -> None:
    skill = made()
    publisher.publish(skill, place)
    folder = by_hand(place, tmp_path)
    for path, data in skill.all_files.items():
        assert (folder / NAME / path).read_bytes() == data
    assert skills_ref.validate(folder / NAME) == []
    said = json.loads((folder / f"{NAME}.signed.json").read_bytes())
    assert said.keys() == {"name", "version", "digest", "key", "signature"}
    assert sorted(each.name for each in folder.iterdir() if each.name != ".git") == [
        NAME,
        f"{NAME}.signed.json",
    ]


def test_publishing_again(place: str, publisher: Reader, reader: Reader) -> None:
    publisher.publish(made(), place)
    assert not publisher.publish(made(), place).is_new
    reader.install(place, NAME)
    assert publisher.publish(made(code=OTHER), place).statement.version == 2
    assert reader.propose(place, NAME).doubts == []
    assert reader.install(place, NAME).version == 2
    assert reader.propose(place, NAME).is_there


def test_another_publisher_can_not_take_a_name(place: str, publisher: Reader) -> None:
    publisher.publish(made(), place)
    with pytest.raises(SkillRefused, match="published with another key"):
        publisher.publish(made(code=OTHER), place, THEIRS)


def test_a_file_that_was_changed_is_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    (folder / NAME / "scripts/top_customers.py").write_text("import os\n")
    done(place, folder)
    with pytest.raises(SkillRefused, match="not those that its publisher signed"):
        reader.install(place, NAME)
    assert reader.store.names() == []


def test_a_file_that_was_added_is_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    (folder / NAME / "scripts/more.py").write_text("import os\n")
    done(place, folder)
    with pytest.raises(SkillRefused, match="not those that its publisher signed"):
        reader.install(place, NAME)


@pytest.mark.parametrize("field", ["version", "digest", "key", "signature", "name"])
def test_a_forged_statement_is_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path, field: str
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    path = folder / f"{NAME}.signed.json"
    forged = {
        "version": 7,
        "digest": made(code=OTHER).digest,
        "key": THEIRS.public,
        "signature": THEIRS.sign(b""),
        "name": "other",
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: forged[field]}))
    done(place, folder)
    with pytest.raises(SkillRefused, match=r"not signed by|no statement"):
        reader.install(place, NAME)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": 1}', "[" * 3000, "1" * 5000])
def test_no_statement_is_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path, text: str
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    (folder / f"{NAME}.signed.json").write_text(text)
    done(place, folder)
    with pytest.raises(SkillRefused, match="no statement"):
        reader.install(place, NAME)


def replace_with(place: str, tmp_path: Path, version: int, code: str, key: object = OURS) -> None:
    """Put a signed skill there whatever was there before, as the holder of a key can."""
    skill, folder = made(code=code), by_hand(place, tmp_path)
    (folder / NAME / "scripts/top_customers.py").write_text(code)
    said = statement.sign(NAME, version, skill.digest, key)  # type: ignore[arg-type]
    (folder / f"{NAME}.signed.json").write_bytes(said.to_bytes())
    done(place, folder)


def test_another_key_is_refused_until_it_is_named(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    reader.install(place, NAME)
    replace_with(place, tmp_path, 2, OTHER, THEIRS)
    with pytest.raises(SkillRefused, match=f"--key {THEIRS.public}".replace("+", r"\+")):
        reader.install(place, NAME)
    with pytest.raises(SkillRefused, match="which key is theirs"):
        reader.install(place, NAME, key=OURS.public)
    assert reader.install(place, NAME, key=THEIRS.public).version == 2
    assert reader.propose(place, NAME).doubts == []


def test_an_older_version_is_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    publisher.publish(made(code=OTHER), place)
    reader.install(place, NAME)
    replace_with(place, tmp_path, 1, "def run():\n    return 1\n")
    with pytest.raises(SkillRefused, match=r"offers version 1 .* version 2 was seen"):
        reader.install(place, NAME)


def test_other_files_under_the_number_of_a_version_are_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    reader.install(place, NAME)
    replace_with(place, tmp_path, 1, OTHER)
    with pytest.raises(SkillRefused, match="a version must stay what it was"):
        reader.install(place, NAME)
    assert reader.store.get(NAME).skill == made()


def test_a_publisher_goes_on_after_the_catalogue_was_set_back(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    publisher.publish(made(code=OTHER), place)
    reader.install(place, NAME)
    replace_with(place, tmp_path, 1, "def run():\n    return 1\n")
    third = made(code="def run():\n    return 3\n")
    assert publisher.publish(third, place).statement.version == 3
    assert reader.install(place, NAME).skill == third


def test_what_nobody_has_signed_is_not_offered(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    shutil.copytree(folder / NAME, folder / "unsigned")
    done(place, folder)
    with pytest.raises(SkillMissing, match="nobody has signed unsigned"):
        reader.install(place, "unsigned")
    with pytest.raises(SkillMissing, match=f"no skill absent in .*: it has {NAME}"):
        reader.install(place, "absent")


def test_a_skill_under_the_name_of_another_is_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    shutil.copytree(folder / NAME, folder / "other")
    said = statement.sign("other", 1, made().digest, OURS)
    (folder / "other.signed.json").write_bytes(said.to_bytes())
    done(place, folder)
    with pytest.raises(SkillRefused, match="holds the skill top-customers"):
        reader.install(place, "other")


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/x", "a\0b", ".", "..", "a/b", "a" * 300, "-x", "--help", "A", "json"]
)
def test_names_that_lead_elsewhere(place: str, reader: Reader, name: str) -> None:
    with pytest.raises(SkillRefused):
        reader.install(place, name)


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "SKILL.md"])
def test_links_are_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path, target: str
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    os.symlink(target, folder / NAME / "link.md")
    done(place, folder)
    with pytest.raises(SkillRefused, match="link"):
        reader.install(place, NAME)


def test_a_link_as_the_skill_or_the_statement_is_refused(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    (folder / NAME).rename(folder / "away")
    os.symlink("away", folder / NAME)
    done(place, folder)
    with pytest.raises(SkillRefused):
        reader.install(place, NAME)
    folder = by_hand(place, tmp_path)
    (folder / f"{NAME}.signed.json").rename(folder / "away.json")
    os.symlink("away.json", folder / f"{NAME}.signed.json")
    done(place, folder)
    with pytest.raises(SkillRefused):
        reader.install(place, NAME)


def test_too_large_and_too_many_are_refused_before_they_are_read(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    folder = by_hand(place, tmp_path)
    (folder / NAME / "large.bin").write_bytes(bytes(5 << 20))
    done(place, folder)
    with pytest.raises(SkillRefused, match="larger than"):
        reader.install(place, NAME)
    folder = by_hand(place, tmp_path)
    (folder / NAME / "large.bin").unlink()
    for number in range(600):
        (folder / NAME / f"{number}.md").write_text("x")
    done(place, folder)
    with pytest.raises(SkillRefused, match="files"):
        reader.install(place, NAME)


# What a person has to look at


def test_a_key_is_shown_when_it_is_seen_first(
    place: str, publisher: Reader, reader: Reader
) -> None:
    publisher.publish(made(), place)
    assert reader.propose(place, NAME).doubts == ["its publisher's key is seen for the first time"]
    assert reader.propose(place, NAME, key=OURS.public).doubts == []
    assert reader.propose(place, NAME, digest=made().digest).doubts == []
    with pytest.raises(SkillRefused, match="not the one that was named"):
        reader.propose(place, NAME, digest="0" * 64)
    assert reader.store.names() == [], "a proposal keeps nothing"


def test_a_known_key_is_known_for_other_skills_of_the_catalogue_alone(
    place: str, publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(), place)
    publisher.publish(made("other-one"), place)
    publisher.publish(made("third-one"), place, THEIRS)
    reader.install(place, NAME)
    assert reader.propose(place, "other-one").doubts == []
    assert reader.propose(place, "third-one").doubts != []
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    publisher.publish(made("other-one"), str(elsewhere))
    assert reader.propose(str(elsewhere), "other-one").doubts != []


def test_code_that_the_rules_ask_about_or_forbid(
    place: str, publisher: Reader, tmp_path: Path
) -> None:
    publisher.publish(made(code="import subprocess\nsubprocess.run('ls')\n"), place)
    asking = Reader(tmp_path / "a", ReviewSettings(rules=ReviewRules(process="ask")))
    proposal = asking.propose(place, NAME, key=OURS.public)
    assert proposal.doubts == ["the review has found what a person has to decide"]
    assert asking.keep(proposal).version == 1
    forbidding = Reader(tmp_path / "f", ReviewSettings(rules=ReviewRules(process="deny")))
    with pytest.raises(SkillRefused, match=r"was not installed: .*starts a process"):
        forbidding.install(place, NAME)
    assert forbidding.store.names() == [] and forbidding.seen.of(place, NAME) is None


def test_ones_own_skill_is_not_replaced_without_a_word(
    place: str, publisher: Reader, reader: Reader
) -> None:
    publisher.publish(made(code=OTHER), place)
    reader.store.save(made(), RECORD)
    proposal = reader.propose(place, NAME, key=OURS.public)
    assert proposal.doubts == ["it takes the place of a skill of yours that came from elsewhere"]


def test_scripts_that_nobody_reads_are_named(place: str, publisher: Reader, reader: Reader) -> None:
    skill = made()
    more = skill.files | {"scripts/run.sh": b"rm -rf /\n", "scripts/tool": b"#!/usr/bin/perl\n"}
    publisher.publish(skill_file.parse(skill.skill_md, more), place)
    proposal = reader.propose(place, NAME, key=OURS.public)
    assert proposal.unread == ("scripts/run.sh", "scripts/tool")
    assert proposal.doubts == ["it has code that the review does not read"]


UNREAD = {
    "scripts/run": b"\x7fELF\2\1\1\0",
    "scripts/helper.pyc": b"\xa7\r\r\n",
    "scripts/setup": b"rm -rf ~\n",
    "scripts/setup.SH": b"rm -rf ~\n",
    "scripts/marked": b"\xef\xbb\xbf#!/bin/sh\n",
    "Scripts/data.json": b"{}",
    "scripts/a.pyw": b"1\n",
    "scripts/cookie.py": b"# coding: utf-7\n#+AAo-import os\n",
    "scripts/later.py": b"\r# coding: utf-7\r#+AAo-import os\n",
    "scripts/latin.py": b"# \xff\n",
    "scripts/broken.py": b"def (\n",
    "scripts/zero.py": b"1\0\n",
    "assets/program": b"\x7fELF\2\1\1\0",
    "assets/marked": b"\xef\xbb\xbf#!/bin/sh\n",
    "assets/cookie.PY": b"# coding: utf-7\n#+AAo-import os\n",
    **{f"assets/a{ending}": b"x" for ending in (".pyc", ".SO", ".pyw", ".pyd", ".Zip")},
}


@pytest.mark.parametrize("path", UNREAD)
def test_code_that_nobody_can_read_is_a_doubt(reader: Reader, tmp_path: Path, path: str) -> None:
    skill = made()
    more = skill.files | {path: UNREAD[path]}
    reader.publish(skill_file.parse(skill.skill_md, more), str(tmp_path))
    proposal = reader.propose(str(tmp_path), NAME, key=OURS.public)
    assert proposal.unread == (path,)
    assert "it has code that the review does not read" in proposal.doubts


@pytest.mark.parametrize("path", ["scripts/a.PY", "scripts/a.py", "assets/a.Py"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "# coding: utf8\n", "#!/usr/bin/python\n"])
def test_python_is_read_whatever_its_letters(
    reader: Reader, tmp_path: Path, path: str, begin: str
) -> None:
    skill = made()
    code = f"{begin}import subprocess\nsubprocess.run('ls')\n".encode()
    reader.publish(skill_file.parse(skill.skill_md, skill.files | {path: code}), str(tmp_path))
    proposal = reader.propose(str(tmp_path), NAME, key=OURS.public)
    assert [finding.kind for finding in proposal.reviews[path].findings] == ["process"]
    assert proposal.unread == ()


def test_what_is_only_read_is_no_doubt(reader: Reader, tmp_path: Path) -> None:
    skill = made()
    more = {"references/a.md": b"# A\n", "assets/logo.png": b"\x89PNG", "assets/a.json": b"{}"}
    reader.publish(skill_file.parse(skill.skill_md, skill.files | more), str(tmp_path))
    assert reader.propose(str(tmp_path), NAME, key=OURS.public).doubts == []


def test_characters_that_nobody_sees_are_a_doubt(
    place: str, publisher: Reader, reader: Reader
) -> None:
    publisher.publish(made(code="# \u202e\n"), place)
    proposal = reader.propose(place, NAME, key=OURS.public)
    assert proposal.hiding == ("scripts/top_customers.py",)
    assert proposal.doubts == ["it has characters that nobody sees"]


def test_tools_are_named(place: str, publisher: Reader, reader: Reader) -> None:
    code = "from servers.shop import refund\n\ndef run():\n    return refund(1)\n"
    publisher.publish(made(code=code), place)
    assert reader.propose(place, NAME).tools == ["shop.refund"]


def test_a_record_of_keys_that_is_damaged_stops_everything(
    place: str, publisher: Reader, reader: Reader
) -> None:
    publisher.publish(made(), place)
    reader.install(place, NAME)
    for text in ("", "{", "[]", '{"x": {"y": 1}}'):
        (reader.data / "catalogues.json").write_text(text)
        with pytest.raises(ConfigError, match="which keys you have agreed to"):
            reader.install(place, NAME)


# Of git alone


def test_a_history_that_was_rewritten_is_refused(
    publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    place = repository(tmp_path / "catalogue.git")
    publisher.publish(made(), place)
    publisher.publish(made("other-one"), place)
    reader.install(place, NAME)
    work = clone(place, tmp_path / "work")
    (work / "README").write_text("new")
    commit_all(work, amend=True)
    with pytest.raises(HistoryRewritten, match="was rewritten"):
        reader.propose(place, NAME)
    with pytest.raises(HistoryRewritten):
        reader.propose(place, NAME)
    git(work, "checkout", "--quiet", "--orphan", "anew")
    commit_all(work)
    with pytest.raises(HistoryRewritten):
        reader.propose(place, NAME)


def test_a_repository_that_was_emptied_is_refused(
    publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    place = repository(tmp_path / "catalogue.git")
    publisher.publish(made(), place)
    reader.install(place, NAME)
    git(tmp_path / "catalogue.git", "update-ref", "-d", "refs/heads/main")
    with pytest.raises(HistoryRewritten):
        reader.propose(place, NAME)


def test_a_history_that_goes_on_is_read(publisher: Reader, reader: Reader, tmp_path: Path) -> None:
    place = repository(tmp_path / "catalogue.git")
    publisher.publish(made(), place)
    reader.install(place, NAME)
    for number in range(3):
        publisher.publish(made(code=f"def run():\n    return {number}\n# {number}"), place)
        assert reader.install(place, NAME).version == number + 2
    work = clone(place, tmp_path / "work")
    assert git(work, "rev-list", "--count", "HEAD") == "4"


def test_nothing_of_a_repository_runs(publisher: Reader, reader: Reader, tmp_path: Path) -> None:
    place = repository(tmp_path / "catalogue.git")
    publisher.publish(made(), place)
    reader.install(place, NAME)
    work = clone(place, tmp_path / "work")
    ran = tmp_path / "ran"
    (work / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (work / ".gitmodules").write_text(
        f'[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch {ran}"\n'
    )
    (work / "sitecustomize.py").write_text(f"open({str(ran)!r}, 'w')")
    commit_all(work)
    for hook in ("post-checkout", "post-merge", "pre-receive", "reference-transaction"):
        for copy in (tmp_path / "catalogue.git", *reader.data.glob("*/*.git")):
            folder = copy / "hooks"
            folder.mkdir(exist_ok=True)
            (folder / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
            (folder / hook).chmod(0o755)
    reader.install(place, NAME)
    copies = [path for path in reader.data.rglob("*") if path.is_file()]
    assert not ran.exists() and not [path for path in copies if path.name == "SKILL.md"]


HOOKS = (
    *("pre-receive", "update", "post-receive", "post-update", "proc-receive", "push-to-checkout"),
    *("reference-transaction", "pre-auto-gc", "fsmonitor-watchman"),
)


def test_publishing_runs_nothing_of_a_repository(publisher: Reader, tmp_path: Path) -> None:
    bare, other, ran = tmp_path / "catalogue.git", tmp_path / "other.git", tmp_path / "ran"
    place = repository(bare)
    publisher.publish(made("other-one"), repository(other))
    touch = f"touch {ran}; :"
    for hook in HOOKS:
        (bare / "hooks").mkdir(exist_ok=True)
        (bare / "hooks" / hook).write_text(f"#!/bin/sh\n{touch}\n")
        (bare / "hooks" / hook).chmod(0o755)
    (bare / "objects/info/alternates").write_text(f"{other}/objects\n")
    for name, value in {
        "core.alternateRefsCommand": touch,
        "core.fsmonitor": touch,
        "core.sshCommand": touch,
        "core.hooksPath": str(bare / "hooks"),
        "receive.procReceiveRefs": "refs/heads",
        "receive.denyCurrentBranch": "updateInstead",
        "uploadpack.packObjectsHook": touch,
        "extensions.partialClone": "evil",
        "core.repositoryFormatVersion": "1",
        "remote.evil.url": str(other),
        "remote.evil.promisor": "true",
        "remote.evil.uploadpack": touch,
    }.items():
        git(bare, "config", name, value)
    assert publisher.publish(made(), place).is_new
    assert publisher.publish(made(code=OTHER), place).statement.version == 2
    assert not ran.exists()
    assert git(bare, "-c", "core.hooksPath=/dev/null", "rev-list", "--count", "main") == "2"
    git(bare, "update-ref", "refs/heads/proof", "main")
    assert ran.exists(), "these hooks run where git is used as it is"


def test_an_empty_repository_says_which_branch_is_its_first(
    publisher: Reader, reader: Reader, tmp_path: Path
) -> None:
    place = repository(tmp_path / "catalogue.git")
    git(tmp_path / "catalogue.git", "symbolic-ref", "HEAD", "refs/heads/trunk")
    publisher.publish(made(), place)
    branches = git(tmp_path / "catalogue.git", "for-each-ref", "--format=%(refname)")
    assert branches == "refs/heads/trunk"
    assert reader.install(place, NAME).version == 1


def test_a_checkout_is_not_published_to(publisher: Reader, tmp_path: Path) -> None:
    publisher.publish(made(), repository(tmp_path / "catalogue.git"))
    work = clone(f"file://{tmp_path}/catalogue.git", tmp_path / "work")
    with pytest.raises(SkillRefused, match="has files checked out"):
        publisher.publish(made(code=OTHER), f"file://{work}")


def test_what_is_published_may_be_written_by_those_the_repository_is_shared_with(
    publisher: Reader, tmp_path: Path
) -> None:
    bare = tmp_path / "catalogue.git"
    place = repository(bare)
    git(bare, "config", "core.sharedRepository", "group")
    publisher.publish(made(), place)
    assert (bare / "refs/heads/main").stat().st_mode & 0o060 == 0o060


def test_no_repository_is_said(publisher: Reader, tmp_path: Path) -> None:
    with pytest.raises(SkillRefused, match="no git repository at"):
        publisher.publish(made(), f"file://{tmp_path}/absent.git")


def test_a_fetch_that_fails_leaves_nothing(
    publisher: Reader, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = repository(tmp_path / "catalogue.git")
    publisher.publish(made(), place)
    work = clone(place, tmp_path / "work")
    (work / "large").write_bytes(os.urandom(3 << 20))
    commit_all(work)
    with monkeypatch.context() as patched:
        patched.setattr(git_repository, "MOST_FETCHED", 1 << 20)
        with pytest.raises(GitFailed):
            reader.propose(place, NAME)
    copies = reader.data / "catalogues"
    assert sum(path.stat().st_size for path in copies.rglob("*") if path.is_file()) < 100_000
    [copy] = copies.glob("*.git")
    (copy / "objects/pack/tmp_pack_killed").write_bytes(b"x")
    assert reader.install(place, NAME).version == 1
    assert not [*copies.rglob("tmp*")]


def test_the_copies_have_a_largest_size(
    publisher: Reader, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repository, "MOST_KEPT", 1 << 20)
    place, other = repository(tmp_path / "catalogue.git"), repository(tmp_path / "other.git")
    publisher.publish(made(), place)
    reader.install(place, NAME)
    work = clone(place, tmp_path / "work")
    (work / "large").write_bytes(os.urandom(1 << 20))
    commit_all(work)
    with pytest.raises(GitFailed):
        reader.propose(place, NAME)
    [copy] = (reader.data / "catalogues").glob("*.git")
    (copy / "objects/pack/pack-large.pack").write_bytes(bytes(1 << 20))
    with pytest.raises(SkillRefused, match="remove those that you do not need"):
        reader.propose(place, NAME)
    publisher.publish(made("other-one"), other)
    with pytest.raises(SkillRefused, match="remove those that you do not need"):
        reader.propose(other, "other-one")


def test_a_submodule_is_refused(publisher: Reader, reader: Reader, tmp_path: Path) -> None:
    place = repository(tmp_path / "catalogue.git")
    publisher.publish(made(), place)
    work = clone(place, tmp_path / "work")
    commit = git(work, "rev-parse", "HEAD")
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{commit},{NAME}/module")
    git(work, "commit", "--quiet", "-m", "a submodule")
    git(work, "push", "--quiet", "origin", "HEAD:main")
    with pytest.raises(SkillRefused, match="a link or a submodule"):
        reader.install(place, NAME)


def test_a_bare_repository_is_named_by_its_address(reader: Reader, tmp_path: Path) -> None:
    repository(tmp_path / "catalogue.git")
    with pytest.raises(SkillRefused, match=f"name it as file://{tmp_path}"):
        reader.propose(str(tmp_path / "catalogue.git"), NAME)


def test_an_empty_repository_has_none(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(SkillMissing, match="it has none"):
        reader.propose(repository(tmp_path / "catalogue.git"), NAME)
