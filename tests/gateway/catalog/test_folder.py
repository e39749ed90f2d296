"""The folder of wrappers is complete, readable by all, and changes only where it must."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from divingbell.gateway.catalog.folder import Folder
from divingbell.tool import Tool


def _tools(*names: str, description: str = "Does it.") -> list[Tool]:
    return [Tool("git-hub", name, "git_hub", name, description) for name in names]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    found = Folder(tmp_path / "servers")
    yield found
    found.close()


def _files(folder: Folder) -> dict[str, int]:
    """Each file with the number that the disk knows it by: a new file has another."""
    paths = [path for path in folder.path.rglob("*") if not path.is_dir()]
    return {str(path.relative_to(folder.path)): path.lstat().st_ino for path in paths}


def test_a_server_is_a_package_with_a_module_for_each_tool(folder: Folder) -> None:
    assert folder.write("git-hub", "git_hub", _tools("one", "two"), "Be kind.")
    folder.write_index([("git-hub", "git_hub", 2)])
    assert set(_files(folder)) == {
        "README.md",
        "git_hub/README.md",
        "git_hub/__init__.py",
        "git_hub/one.py",
        "git_hub/two.py",
    }
    assert "def one(" in (folder.path / "git_hub" / "one.py").read_text()
    assert "git_hub" in (folder.path / "README.md").read_text()


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_everybody_may_read_and_nobody_else_may_write(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        folder = Folder(tmp_path / "servers")
        folder.write("git-hub", "git_hub", _tools("one"))
        folder.write_index([])
    finally:
        os.umask(before)
    for path in [folder.path, *folder.path.rglob("*")]:
        expected = 0o755 if path.is_dir() else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
    folder.close()


def test_what_is_the_same_is_left_alone(folder: Folder) -> None:
    folder.write("git-hub", "git_hub", _tools("one", "two"))
    folder.write_index([("git-hub", "git_hub", 2)])
    files, generation = _files(folder), folder.generation
    assert not folder.write("git-hub", "git_hub", _tools("one", "two"))
    assert not folder.write_index([("git-hub", "git_hub", 2)])
    assert not folder.remove("nothing")
    assert _files(folder) == files
    assert folder.generation == generation


def test_only_what_changed_is_replaced_and_what_is_gone_is_removed(folder: Folder) -> None:
    folder.write("git-hub", "git_hub", _tools("one", "two", "three"))
    files, generation = _files(folder), folder.generation
    changed = [*_tools("one"), *_tools("two", description="Does it better.")]
    assert folder.write("git-hub", "git_hub", changed)
    after = _files(folder)
    assert folder.generation == generation + 1
    assert after["git_hub/one.py"] == files["git_hub/one.py"]
    assert "Does it better." in (folder.path / "git_hub" / "two.py").read_text()
    assert "git_hub/three.py" not in after
    assert "three" not in (folder.path / "git_hub" / "__init__.py").read_text()


def test_a_reader_of_an_old_file_keeps_it_whole(folder: Folder) -> None:
    folder.write("git-hub", "git_hub", _tools("one"))
    with (folder.path / "git_hub" / "one.py").open() as reader:
        folder.write("git-hub", "git_hub", _tools("one", description="Another."))
        assert "Does it." in reader.read()


def test_servers_do_not_touch_each_other(folder: Folder) -> None:
    folder.write("a", "a", _tools("one"))
    folder.write("b", "b", _tools("two"))
    assert folder.remove("a")
    assert set(_files(folder)) == {"b/README.md", "b/__init__.py", "b/two.py"}


def test_links_and_leftovers_are_replaced_and_never_followed(
    folder: Folder, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one.py").write_text("precious")
    (folder.path / "git_hub").symlink_to(outside)
    folder.write("git-hub", "git_hub", _tools("one"))
    package = folder.path / "git_hub"
    assert not package.is_symlink()
    (package / "one.py").unlink()
    (package / "one.py").symlink_to(outside / "one.py")
    (package / "__init__.py").unlink()
    (package / "__init__.py").mkdir()
    (package / "stale").symlink_to(outside)
    (package / "__pycache__").mkdir()
    os.mkfifo(package / "pipe")
    assert folder.write("git-hub", "git_hub", _tools("one"))
    assert (outside / "one.py").read_text() == "precious"
    assert set(_files(folder)) == {"git_hub/README.md", "git_hub/__init__.py", "git_hub/one.py"}
    assert all(path.is_file() and not path.is_symlink() for path in package.iterdir())
    (folder.path / "other").symlink_to(outside)
    assert folder.remove("other")
    assert (outside / "one.py").read_text() == "precious"


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "", ".", "__init__", "a\0b", "class"])
def test_names_that_lead_elsewhere_are_refused(folder: Folder, name: str) -> None:
    with pytest.raises(ValueError, match="naming"):
        folder.write("s", name, _tools("one"))
    with pytest.raises(ValueError, match="naming"):
        folder.write("s", "s", [Tool("s", "t", "s", name)])
    assert not folder.remove(name)
    assert _files(folder) == {}
    assert folder.generation == 0


def test_two_tools_with_one_name_are_refused(folder: Folder) -> None:
    with pytest.raises(ValueError, match="naming"):
        folder.write("s", "s", _tools("one", "one"))


def test_closing_removes_all_of_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "servers")
    folder.write("s", "s", _tools("one"))
    folder.close()
    folder.close()
    assert not folder.path.exists()
