"""Locks between processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.host.lock_file import alone
from tests.waiting import PATIENCE

HOLD = """
import sys
from pathlib import Path
from divingbell.host.lock_file import alone
with alone(Path(sys.argv[1]), 5):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as holder:  # type: ignore[call-overload]
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match="another process has held"), alone(path, 0.1):
            pass
        holder.kill()
    with alone(path, PATIENCE):
        pass
    with alone(path, PATIENCE):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    os.symlink(tmp_path / "elsewhere", tmp_path / "lock")
    with pytest.raises(ConfigError, match="can't be made"), alone(tmp_path / "lock", 1):
        pass
    assert not (tmp_path / "elsewhere").exists()
