"""The store: every version, all or nothing, one user at a time."""

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from divingbell.errors import SkillMissing, SkillRefused
from divingbell.skills import skill_file
from divingbell.skills import store as stores
from divingbell.skills.record import Record, Usage
from divingbell.skills.store import Store, Stores
from tests.skills.samples import RECORD, made
from tests.small_disk import AS_ROOT, filled, small_disk


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Stores(tmp_path / "skills").of("anna")


def _edit(store: Store, statement: str, *given: object) -> None:
    database = sqlite3.connect(store.folder / stores.FILE_NAME)
    with database:
        database.execute(statement, given)
    database.close()


def test_an_empty_store_makes_nothing(store: Store) -> None:
    assert (store.names(), store.summaries(), store.generation) == ([], [], 0)
    with pytest.raises(SkillMissing, match="no skill top-customers"):
        store.get("top-customers")
    assert not store.folder.exists()


@pytest.mark.parametrize(("user", "is_named"), [("anna", True), ("anna@example.org", False)])
def test_a_user_is_named_in_the_file_unless_the_name_is_an_address(
    tmp_path: Path, user: str, is_named: bool
) -> None:
    store = Stores(tmp_path).of(user)
    store.save(made(), RECORD)
    written = b"".join(path.read_bytes() for path in store.folder.iterdir() if path.is_file())
    assert (user.encode() in written) is is_named and b"example.org" not in written


def test_what_was_saved_is_got_again_with_all_that_is_known(store: Store) -> None:
    record = Record(
        "session", "s-1", "key", {"shop.orders": "abc"}, ("shop.orders",), "changed", "why", 120
    )
    kept = store.save(made(), record)
    assert store.get("top-customers") == kept
    assert (kept.version, kept.skill, kept.record) == (1, made(), record)
    [summary] = store.summaries()
    assert (summary.name, summary.digest, summary.record) == (
        "top-customers", made().digest, record,
    )  # fmt: skip


def test_every_version_is_kept_and_can_be_offered_again(store: Store) -> None:
    for number in range(1, 4):
        assert store.save(made(code=f"x = {number}\n"), RECORD).version == number
    assert store.rollback("top-customers").version == 2
    assert store.get("top-customers").skill.code == "x = 2\n"
    assert [store.get("top-customers", number).current for number in (1, 2, 3)] == [0, 1, 0]
    found = store.versions("top-customers")
    assert [each.version for each in found] == [1, 2, 3]
    assert found[0].digest == made(code="x = 1\n").digest
    assert store.rollback("top-customers", 3).current
    store.rollback("top-customers", 1)
    assert store.save(made(code="x = 4\n"), RECORD).version == 4
    with pytest.raises(SkillMissing, match="no version 9"):
        store.rollback("top-customers", 9)


def test_there_is_nothing_before_the_first_version(store: Store) -> None:
    store.save(made(), RECORD)
    with pytest.raises(SkillMissing, match="before 1"):
        store.rollback("top-customers")


def test_the_same_again_is_no_new_version(store: Store) -> None:
    store.save(made(), RECORD)
    store.save(made(), Record("session", state="changed"))
    assert store.numbers("top-customers") == [1]
    assert store.get("top-customers").record.state == "changed"


def test_what_was_removed_is_gone_with_its_versions_and_uses(store: Store) -> None:
    store.save(made(code="x = 1\n"), RECORD)
    store.save(made(), RECORD)
    store.add_usage({"top-customers": Usage(3, 1, 50)})
    assert store.remove("top-customers") == 2
    with pytest.raises(SkillMissing):
        store.remove("top-customers")
    store.save(made(), RECORD)
    assert [(each.version, each.usage) for each in store.summaries()] == [(1, Usage())]


def test_uses_are_added_up(store: Store) -> None:
    store.save(made(), RECORD)
    store.add_usage({"top-customers": Usage(3, 1, 50), "gone": Usage(1)})
    store.add_usage({"top-customers": Usage(1, 0, 20)})
    [summary] = store.summaries()
    assert (summary.usage, summary.usage.success_rate) == (Usage(4, 1, 70), 0.75)
    assert Usage().success_rate is None


def test_every_change_of_what_is_offered_is_a_new_generation(store: Store) -> None:
    seen = [store.generation]
    for change in (
        lambda: store.save(made(), RECORD),
        lambda: store.save(made(code="x = 2\n"), RECORD),
        lambda: store.rollback("top-customers"),
        lambda: store.mark("top-customers", 1, "changed", "a tool has changed"),
        lambda: store.remove("top-customers"),
    ):
        change()
        seen.append(store.generation)
    assert seen == sorted(set(seen))


def test_what_has_changed_after_a_generation_is_read_alone(store: Store) -> None:
    store.save_all([(made("first"), RECORD), (made("second"), RECORD)])
    seen = store.generation
    assert store.summaries(seen) == []
    store.mark("second", 1, "failed")
    assert [(each.name, each.record.state) for each in store.summaries(seen)] == [
        ("second", "failed")
    ]
    assert [each.name for each in store.summaries()] == ["first", "second"]


@pytest.mark.parametrize(
    "others", ["", "Anna", "anna ", "../anna", "/etc", "a\0b", "x" * 10_000, "\ud800", "ａｎｎａ"]
)
def test_no_user_sees_the_skills_of_another(tmp_path: Path, others: str) -> None:
    root = tmp_path / "skills"
    Stores(root).of("anna").save(made(), RECORD)
    other = Stores(root).of(others)
    with pytest.raises(SkillMissing):
        other.get("top-customers")
    other.save(made("mine"), RECORD)
    assert (other.names(), Stores(root).of("anna").names()) == (["mine"], ["top-customers"])
    assert {each.parent for each in tmp_path.rglob("*.db")} == {
        Stores(root).of("anna").folder, other.folder,
    }  # fmt: skip
    assert other.folder.parent == root


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a\0b", ".", "..", "a/b", "x" * 300, "os"])
def test_a_name_that_leads_elsewhere_is_refused(store: Store, name: str) -> None:
    for ask in (store.get, store.remove, store.rollback, store.numbers):
        with pytest.raises(SkillRefused, match="can't be"):
            ask(name)


def test_a_forged_file_is_not_offered(store: Store) -> None:
    store.save(made(), RECORD)
    _edit(store, "UPDATE files SET data = ? WHERE path LIKE 'scripts/%'", b"import evil\n")
    with pytest.raises(SkillRefused, match="not those that were saved"):
        store.get("top-customers")


def test_a_skill_in_the_place_of_another_is_not_offered(store: Store) -> None:
    store.save(made(), RECORD)
    for table in ("files", "versions", "offered"):
        _edit(store, f"UPDATE {table} SET name = 'another'")
    with pytest.raises(SkillRefused, match="another one"):
        store.get("another")


def test_a_record_that_was_damaged_is_said(store: Store) -> None:
    store.save(made(), RECORD)
    _edit(store, "UPDATE versions SET record = '[]'")
    with pytest.raises(SkillRefused, match="damaged"):
        store.get("top-customers")


def test_a_file_that_is_no_store_is_said(store: Store) -> None:
    store.folder.mkdir(parents=True)
    (store.folder / stores.FILE_NAME).write_bytes(b"something else" * 100)
    with pytest.raises(SkillRefused, match="can't be used"):
        store.names()
    with pytest.raises(SkillRefused, match="can't be used"):
        store.save(made(), RECORD)


def test_a_folder_that_others_may_write_to_is_refused(store: Store) -> None:
    store.save(made(), RECORD)
    store.folder.chmod(0o777)
    with pytest.raises(SkillRefused, match="written to by other users"):
        store.get("top-customers")


def test_only_its_owner_can_enter(store: Store) -> None:
    store.save(made(), RECORD)
    assert store.folder.stat().st_mode & 0o777 == 0o700


def test_there_is_an_end_to_skills_versions_and_bytes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MAX_SKILLS", 2)
    monkeypatch.setattr(stores, "MAX_VERSIONS", 2)
    store.save(made(code="x = 1\n"), RECORD)
    store.save(made(code="x = 2\n"), RECORD)
    with pytest.raises(SkillRefused, match="2 versions"):
        store.save(made(code="x = 3\n"), RECORD)
    store.save(made("another"), RECORD)
    with pytest.raises(SkillRefused, match="2 skills"):
        store.save(made("one-more"), RECORD)
    monkeypatch.setattr(stores, "MAX_STORE", 1 << 20)
    with pytest.raises(SkillRefused, match="no more room"):
        store.save(made("another", code="x" * (2 << 20)), RECORD)
    assert store.get("another").version == 1


@AS_ROOT
def test_a_disk_that_is_full_is_told_from_a_user_who_has_enough(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2 << 20) as disk:
        store = Stores(disk / "skills").of("anna")
        store.save(made(), RECORD)
        with filled(disk):
            for change in (
                lambda: store.save(made("large", code="x = 1\n" * 20_000), RECORD),
                lambda: Stores(disk / "skills").of("bob").save(made(), RECORD),
            ):
                with pytest.raises(SkillRefused, match="is full: nothing was changed; make room"):
                    change()
            assert store.names() == ["top-customers"]
            assert store.get("top-customers").skill == made()
        store.save(made("large", code="x = 1\n" * 20_000), RECORD)
        assert store.names() == ["large", "top-customers"]
        with pytest.raises(SkillRefused, match="is full"):  # with some room, which is too little
            store.save(made("larger", code="x = 1\n" * 400_000), RECORD)
        assert store.names() == ["large", "top-customers"]


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "skills"

    def save(number: int) -> int:
        return Stores(root).of("anna").save(made(code=f"x = {number}\n"), RECORD).version

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(save, range(24))) == list(range(1, 25))
    assert Stores(root).of("anna").numbers("top-customers") == list(range(1, 25))


WRITER = """
import sys
from pathlib import Path
from divingbell.skills.store import Stores
from tests.skills.samples import RECORD, made
store = Stores(Path(sys.argv[1])).of("anna")
number = 0
while True:
    number += 1
    store.save(made(code=f"x = {number}  #{'y' * 200_000}\\n"), RECORD)
    print(number, flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_versions(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    for patience in (1, 3, 6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert writer.stdout is not None
        with writer.stdout as said:
            for _ in range(patience):
                assert said.readline()
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        store = Stores(root).of("anna")
        numbers = store.numbers("top-customers")
        assert len(numbers) >= patience
        assert [store.get("top-customers", each).version for each in numbers] == numbers
        assert store.get("top-customers").version == numbers[-1]


def test_ten_thousand_skills_are_listed_whole_and_the_next_is_refused(store: Store) -> None:
    store.save(made("skill-0"), RECORD)
    database = sqlite3.connect(store.folder / stores.FILE_NAME)
    with database:  # one transaction: ten thousand would take half a minute
        for table in ("versions", "files", "offered"):
            columns = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
            taken = ", ".join(columns[1:])
            database.execute(
                f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
                f"INSERT INTO {table} SELECT 'skill-' || i, {taken} FROM {table}, n"
            )
    database.close()
    assert len(store.names()) == len(store.summaries()) == 10_000
    with pytest.raises(SkillRefused, match="10,000 skills"):
        store.save(made("one-more"), RECORD)
    store.remove("skill-9999")
    assert store.save(made("one-more"), RECORD).version == 1


def test_flow_labels_of_one_version_are_those_of_all_that_come_after(store: Store) -> None:
    assert store.labels("top-customers") == ()
    store.save(made(), replace(RECORD, labels=("shop.orders",)))
    same = store.save(made(), replace(RECORD, labels=("crm.people",)))
    assert same.version == 1 and same.record.labels == ("crm.people", "shop.orders")
    store.save(made(code="x = 2\n"), RECORD)
    store.rollback("top-customers")
    assert store.save(made(code="x = 3\n"), RECORD).record.labels == same.record.labels
    assert store.labels("top-customers") == store.get("top-customers").record.labels
    assert store.labels("other") == ()


def test_a_name_is_taken_as_it_is_written_in_code_too(store: Store) -> None:
    store.save(made(), RECORD)
    store.save(made(code="x = 2\n"), RECORD)
    assert store.get("top_customers").skill.name == "top-customers"
    assert store.numbers("top_customers") == [1, 2] and len(store.versions("top_customers")) == 2
    assert store.rollback("top_customers").version == 1
    store.mark("top_customers", 1, "failed")
    for ask in (store.get, store.versions, store.numbers, store.rollback, store.remove):
        with pytest.raises(SkillMissing, match=r"did you mean top-customers\? `divingbell skills"):
            ask("top_customer")
    assert store.remove("top_customers") == 2


def test_a_summary_says_whether_a_skill_can_be_imported(store: Store) -> None:
    for name, script in (("3d", "_3d"), ("class", "class_"), ("plain", "plain"), ("text", "x")):
        store.save(skill_file.make(name, "d", "b", {f"scripts/{script}.py": b""}), RECORD)
    assert [each.has_code for each in store.summaries()] == [True, True, True, False]
