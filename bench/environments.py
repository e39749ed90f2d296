"""Environments with what others wrote, installed once as a lock says and kept for the next run."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from turns import Unable

ROOT = Path(__file__).resolve().parents[1]
INSTALL_TIMEOUT = 900


def environment(lock: Path, install: bool, command: str) -> str:
    """The Python that has them installed. `command` is the one that installs them.

    Raises:
        Unable: it has not, and can't or shall not be made.
    """
    key = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    above = cache / "divingbell-bench"
    folder, done = above / key, above / f"{key}.done"
    python = str(folder / "bin" / "python")
    if not install and not done.exists():
        raise Unable(f"not installed ({command} installs it)")
    above.mkdir(parents=True, exist_ok=True)
    with (above / f"{key}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not done.exists():
            print(f"· installing what {lock.relative_to(ROOT)} pins", file=sys.stderr, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            uv = str(Path(sys.executable).with_name("uv"))
            _run(uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder))
            flags = ("--quiet", "--require-hashes", "--compile-bytecode", "--python", python)
            _run(uv, "pip", "install", *flags, "--requirements", str(lock))
            done.touch()
    return python


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_TIMEOUT)
    except subprocess.CalledProcessError as error:
        raise Unable(f"it can't be installed: {error.stderr.strip()[-200:]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unable(f"it can't be installed: {error}") from None
