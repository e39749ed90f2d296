"""The files of a folder that are datasets, and the names that they get."""

import os
from pathlib import Path

import pytest

from divingbell.datasets import folder as folders
from divingbell.datasets.folder import look_through, names_for


def test_files_below_are_found_and_hidden_or_other_ones_are_not(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("a.CSV", "below/b.parquet", ".hidden/c.csv", ".d.csv", "e.txt"):
        (tmp_path / name).write_text("x")
    found = look_through(tmp_path)
    assert [(file.path, file.format) for file in found.files] == [
        ("a.CSV", "csv"),
        ("below/b.parquet", "parquet"),
    ]


def test_links_and_what_is_no_file_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "out.csv").symlink_to("/etc/passwd")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    found = look_through(tmp_path)
    assert (found.files, found.links) == ((), 1)


def test_a_name_that_is_no_text_is_counted(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff.csv"), "wb"):
        pass
    assert look_through(tmp_path).unnamed == 1


def test_there_is_an_end_to_the_files_that_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.csv").write_text("x")
    found = look_through(tmp_path)
    assert (len(found.files), found.more) == (3, True)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        look_through(tmp_path / "nowhere")


def test_names_are_words_and_no_two_are_the_same() -> None:
    labels = ["a b", "a-b", "A_B", "2024/sales", "../x", "\x1b[2J", "", "Übersicht", "x" * 200]
    names = names_for(labels)
    assert names[:5] == ["a_b", "a_b_2", "A_B_3", "_2024_sales", "x"]
    assert all(name.isidentifier() for name in names)
    assert max(map(len, names)) <= folders.MAX_NAME + 1


def test_a_word_of_sql_is_no_name() -> None:
    assert names_for(["select", "Order", "orders"]) == ["select_table", "Order_table", "orders"]
