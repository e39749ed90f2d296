"""Files that only their owner can read or change."""

import os
import stat
from pathlib import Path

import pytest

from divingbell.host import private_file
from divingbell.host.owned_folder import NotOurs


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_the_owner_can_read_what_is_written(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "new" / "file"
    before = os.umask(umask)
    try:
        private_file.write(path, b"secret")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path)]
    assert modes == [0o700, 0o600]
    assert private_file.read(path, 6) == b"secret"


def test_what_is_larger_a_link_or_not_there_is_not_read(tmp_path: Path) -> None:
    private_file.write(tmp_path / "file", b"secret")
    (tmp_path / "link").symlink_to("file")
    assert private_file.read(tmp_path / "file", 5) is None
    assert private_file.read(tmp_path / "link", 6) is None
    assert private_file.read(tmp_path / "nowhere", 6) is None


def test_what_others_may_have_written_is_not_read(tmp_path: Path) -> None:
    private_file.write(tmp_path / "file", b"secret")
    (tmp_path / "file").chmod(0o606)
    assert private_file.read(tmp_path / "file", 6) is None


def test_nothing_is_written_where_others_can_replace_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(NotOurs):
        private_file.write(tmp_path / "file", b"secret")
    assert not any(tmp_path.iterdir())
