"""Folders of processes that live and of those that are gone."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from divingbell.host import folders
from divingbell.host.folders import HostFolders, Workspaces, is_left_over, remove_tree
from divingbell.host.owned_folder import NotOurs

STARTING = """
import os, sys
from pathlib import Path
from divingbell.host import folders
above = Path(sys.argv[1])
for number in range(200):
    folders.own_name = lambda: f"divingbell-{os.getpid()}-{number}"
    held = folders.HostFolders(above)
    assert held.path.is_dir(), "it was taken for left over"
    assert not folders.is_left_over(held.path)
    held.close()
"""


def test_of_processes_that_start_at_once_none_is_taken_for_gone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTING, str(tmp_path)]
    starting = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for process in starting:
        words = process.communicate()[1].decode()
        assert process.returncode == 0, words
    assert not list(tmp_path.iterdir())


def test_a_folder_is_left_over_when_its_process_is_gone(tmp_path: Path) -> None:
    held = HostFolders(tmp_path)
    assert not is_left_over(held.path)
    held.close()
    assert is_left_over(held.path)


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes other users to try it")
def test_what_a_session_leaves_is_for_its_own_uid_and_for_nobody_else() -> None:
    session, other = 1_900_000_001, 65534
    with tempfile.TemporaryDirectory() as above:
        os.chmod(above, 0o755)
        made = Workspaces(Path(above))
        own = made.path / made.make("session-1", session)
        planted = Path(shutil.copy("/bin/true", own / "planted"))
        os.chown(planted, session, session)
        planted.chmod(0o6755)
        own.chmod(0o777)
        with pytest.raises(PermissionError):
            subprocess.run([planted], user=other, group=other, extra_groups=[])
        # As the session sees it, which is shown the folder of all, and has no way to those above.
        listing = ["ls", f"./{own.name}"]
        seen = subprocess.run(
            listing, cwd=made.path, user=session, group=session, extra_groups=[], stdout=-1
        )
        assert seen.stdout == b"planted\n"
        made.close()
        assert not os.listdir(above)


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused_and_left_alone(
    tmp_path: Path, mode: int
) -> None:
    """Somebody may have left there what is then taken for ours."""
    (tmp_path / "above" / "divingbell-1-1" / "planted").mkdir(parents=True)
    (tmp_path / "above").chmod(mode)
    with pytest.raises(NotOurs, match=str(tmp_path / "above")):
        HostFolders(tmp_path / "above")
    assert (tmp_path / "above" / "divingbell-1-1" / "planted").exists()


def test_a_folder_that_becomes_a_link_while_it_is_removed_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hostile code that still runs exchanges it after the look and before the next step."""
    victim, tree = tmp_path / "victim", tmp_path / "tree"
    victim.mkdir(0o755)
    (tree / "folder").mkdir(parents=True)

    def exchange(mode: int) -> bool:
        if stat.S_ISDIR(mode) and (tree / "folder").is_dir() and not (tree / "folder").is_symlink():
            (tree / "folder").rmdir()
            (tree / "folder").symlink_to(victim)
            return True
        return stat.S_ISDIR(mode)

    class Stat:
        S_ISDIR = staticmethod(exchange)

    monkeypatch.setattr(folders, "stat", Stat)
    with pytest.raises(NotADirectoryError):
        remove_tree(tree)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o755
    monkeypatch.undo()
    remove_tree(tree)
    assert victim.exists() and not os.path.lexists(tree)
