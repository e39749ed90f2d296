"""Folders of processes that live and of those that are gone."""

import subprocess
import sys
from pathlib import Path

from divingbell.sandbox.local.folders import HostFolders, is_left_over

STARTING = """
import os, sys
from pathlib import Path
from divingbell.sandbox.local import folders
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
