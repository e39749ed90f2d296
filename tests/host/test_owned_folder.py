"""Folders that another user could have planted or could change are not used."""

import grp
import os
import pwd
import stat
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.host import owned_folder
from divingbell.host.owned_folder import NotOurs, check, check_file, is_ours, make

STRANGER = 64_321
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="to be another user takes root")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def as_stranger(*command: str | Path) -> None:
    subprocess.run(command, check=True, user=STRANGER, group=STRANGER, extra_groups=())


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp, which others can get to."""
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        Path(name).chmod(0o1777)
        yield Path(name)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_missing_is_made_with_the_mode_that_was_asked_for(
    tmp_path: Path, umask: int
) -> None:
    before = os.umask(umask)
    try:
        make(tmp_path / "a" / "b", 0o711)
        make(tmp_path / "a" / "b" / "c", 0o700)
    finally:
        os.umask(before)
    found = [mode_of(tmp_path / name) for name in ("a", "a/b", "a/b/c")]
    assert found == [0o711, 0o711, 0o700]


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    make(tmp_path)
    assert mode_of(tmp_path) == 0o750


def test_a_folder_of_ones_own_below_one_like_tmp_is_fine(shared: Path) -> None:
    assert not check(shared / "own")
    make(shared / "own" / "below")
    assert check(shared / "own" / "below")


def test_one_like_tmp_itself_is_not(shared: Path) -> None:
    with pytest.raises(NotOurs, match="name a folder of your own below it"):
        make(shared)


@pytest.mark.parametrize("mode", [0o757, 0o777])
@pytest.mark.parametrize("use", [make, check])
def test_no_folder_on_the_way_may_be_open_to_others(
    tmp_path: Path, mode: int, use: Callable[[Path], object]
) -> None:
    (tmp_path / "open" / "own").mkdir(parents=True)
    (tmp_path / "open").chmod(mode)
    for below in ("open", "open/own", "open/missing"):
        with pytest.raises(NotOurs, match=rf"`chmod go-w {tmp_path}/open`"):
            use(tmp_path / below)
    assert not (tmp_path / "open" / "missing").exists()


def test_a_group_with_others_in_it_may_not_write_and_a_private_one_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "of-a-group"
    folder.mkdir()
    folder.chmod(0o775)
    monkeypatch.setattr(owned_folder, "_is_private", lambda group, user: False)
    with pytest.raises(NotOurs):
        check(folder)
    monkeypatch.undo()
    if owned_folder._is_private(folder.stat().st_gid, folder.stat().st_uid):
        assert check(folder)


@AS_ROOT
def test_the_private_group_of_a_user_has_nobody_else_in_it() -> None:
    assert owned_folder._is_private(0, 0)
    assert not owned_folder._is_private(0, STRANGER)
    assert not owned_folder._is_private(STRANGER, 0)
    assert not owned_folder._is_private(1, 0)


@AS_ROOT
@pytest.mark.parametrize("use", [make, check])
def test_a_folder_that_another_user_made_first_is_refused_with_its_owner(
    shared: Path, use: Callable[[Path], object]
) -> None:
    as_stranger("mkdir", shared / "planted")
    for below in ("planted", "planted/below"):
        with pytest.raises(NotOurs, match=f"{shared}/planted belongs to the user with uid 64321"):
            use(shared / below)
    assert not (shared / "planted" / "below").exists()


@AS_ROOT
def test_a_link_of_another_user_is_not_followed(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    as_stranger("ln", "-s", tmp_path / "own", shared / "link")
    with pytest.raises(NotOurs, match=f"{shared}/link belongs to"):
        make(shared / "link" / "below")
    assert not any((tmp_path / "own").iterdir())


def test_links_of_ones_own_are_followed_and_looked_behind(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "relative").symlink_to("real")
    (tmp_path / "absolute").symlink_to(tmp_path / "relative" / ".." / "real")
    make(tmp_path / "absolute" / "below")
    assert (tmp_path / "real" / "below").is_dir()
    (tmp_path / "real").chmod(0o777)
    with pytest.raises(NotOurs, match=f"{tmp_path}/real can be written"):
        check(tmp_path / "absolute" / "below")


def test_links_in_a_circle_and_files_on_the_way_are_errors(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        check(tmp_path / "circle")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make(tmp_path / "file" / "below")
    with pytest.raises(NotADirectoryError):
        check(tmp_path / "file")


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path)
    before = os.listdir("/proc/self/fd")
    make(tmp_path / "link" / "a" / "b")
    check(tmp_path / "nowhere" / "b")
    for _ in range(3):
        with pytest.raises(NotOurs):
            check(tmp_path / "link" / "open" / "b")
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_it_is_an_error_of_the_settings_and_one_of_the_system() -> None:
    error = NotOurs("this folder")
    assert isinstance(error, ConfigError) and isinstance(error, PermissionError)
    assert str(error) == error.strerror == "this folder"


def test_files_that_others_can_write_are_not_ours(tmp_path: Path) -> None:
    with open(tmp_path / "file", "w") as file:
        os.fchmod(file.fileno(), 0o644)
        assert is_ours(file.fileno())
        os.fchmod(file.fileno(), 0o606)
        assert not is_ours(file.fileno())


def test_a_file_is_checked_with_all_that_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    file, link = tmp_path / "real" / "file", tmp_path / "link"
    link.symlink_to(file)
    assert not check_file(link)
    file.touch(0o644)
    assert check_file(link) and check_file(file)
    for changed in (file, file.parent):
        mode = mode_of(changed)
        changed.chmod(0o777)
        with pytest.raises(NotOurs, match=f"{changed} can be written"):
            check_file(link)
        changed.chmod(mode)
    with pytest.raises(OSError, match="Invalid argument"):
        check_file(file.parent)


def test_a_group_that_is_the_first_one_of_another_user_is_not_private(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann = pwd.struct_passwd(("ann", "x", 4000, 4000, "", "/", "/bin/sh"))
    bob = pwd.struct_passwd(("bob", "x", 4001, 4000, "", "/", "/bin/sh"))
    group = grp.struct_group(("ann", "x", 4000, []))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: ann)
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(pwd, "getpwall", lambda: [ann])
    assert owned_folder._is_private(4000, 4000)
    monkeypatch.setattr(pwd, "getpwall", lambda: [ann, bob])
    assert not owned_folder._is_private(4000, 4000)


def _access_list(*entries: tuple[int, int, int]) -> bytes:
    """In the form of the kernel: a version, then tag, permissions and id of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def test_an_access_list_that_lets_others_write_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, nobody = tmp_path / "listed", 0xFFFFFFFF
    folder.mkdir()
    owner, stranger, group = (1, 7, nobody), (2, 7, STRANGER), (4, 5, nobody)
    monkeypatch.setattr(owned_folder, "_is_private", lambda group, user: True)
    folder.chmod(0o775)
    assert check(folder)
    for mask, is_fine in ((5, True), (7, False)):
        entries = _access_list(owner, stranger, group, (16, mask, nobody), (32, 5, nobody))
        try:
            os.setxattr(folder, "system.posix_acl_access", entries)
        except OSError as error:
            pytest.skip(f"no access lists here: {error}")
        if is_fine:
            assert check(folder)
            continue
        with pytest.raises(NotOurs, match=f"{folder} can be written"):
            check(folder)
