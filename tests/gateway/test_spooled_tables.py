"""Tables that a dataset server leaves as files: which are taken, and which are refused."""

import os
from pathlib import Path
from typing import Any

import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.spooled_tables import MOST_VALUES, TABLE, take, take_values

NAME = "0123456789abcdef" * 2 + ".parquet"


def meta(**changes: Any) -> dict[str, Any]:
    return {TABLE: {"file": NAME, "rows": 3, "columns": 2, "memory": 100, "remark": "", **changes}}


def test_a_table_is_taken_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"PAR1")
    taken = take(tmp_path, meta())
    assert taken is not None
    with taken as table:
        assert (table.rows, table.columns, table.memory, table.size) == (3, 2, 100, 4)
        assert table.read(10) == b"PAR1"
    assert list(tmp_path.iterdir()) == []


def test_the_values_beside_a_table_are_taken_once_and_the_table_stays(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"PAR1")
    (tmp_path / NAME).with_suffix(".json").write_bytes(b'{"first_name": ["Ann"]}')
    assert take_values(tmp_path, meta()) == '{"first_name": ["Ann"]}'
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert take_values(tmp_path, meta()) == ""


def test_values_without_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"PAR1")
    with (tmp_path / NAME).with_suffix(".json").open("wb") as values:
        values.truncate(MOST_VALUES + 1)
    with pytest.raises(ToolFailed, match="no list of values"):
        take_values(tmp_path, meta())
    assert not (tmp_path / NAME).with_suffix(".json").exists()


@pytest.mark.parametrize("nothing", [None, {}, {"other": 1}])
def test_a_result_that_names_none_has_none(tmp_path: Path, nothing: Any) -> None:
    assert take(tmp_path, nothing) is None and take_values(tmp_path, nothing) == ""


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../../etc/passwd",
        "/etc/passwd",
        "x.parquet",
        f"../{NAME}",
        f"{NAME}\n",
        5,
        None,
        [NAME],
    ],
)
def test_a_name_that_is_none_of_a_table_is_refused(tmp_path: Path, name: Any) -> None:
    for way in (take, take_values):
        with pytest.raises(ToolFailed, match="none of its own"):
            way(tmp_path, meta(file=name))


def test_a_link_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.symlink_to("/etc/passwd")
    with pytest.raises(ToolFailed):
        take(tmp_path, meta())
    path.unlink()
    path.mkdir()
    with pytest.raises(ToolFailed):
        take(tmp_path, meta())
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(ToolFailed):
        take(tmp_path, meta())


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="call it again"):
        take(tmp_path, meta())


@pytest.mark.parametrize("rows", [-1, 1.5, "3", None, True, 1 << 70])
def test_numbers_that_make_no_sense_are_refused_and_nothing_stays_open(
    tmp_path: Path, rows: Any
) -> None:
    (tmp_path / NAME).write_bytes(b"PAR1")
    before = os.listdir("/proc/self/fd")
    with pytest.raises(ToolFailed, match="makes no sense"):
        take(tmp_path, meta(rows=rows))
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("facts", [5, "x", [], True])
def test_facts_that_are_none_are_refused(tmp_path: Path, facts: Any) -> None:
    with pytest.raises(ToolFailed):
        take(tmp_path, {TABLE: facts})
