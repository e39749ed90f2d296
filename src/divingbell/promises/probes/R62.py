# mypy: ignore-errors
import contextlib
import fcntl
import os

from preamble import take

USUAL, LARGE = 1 << 16, 1 << 20
most = MOST  # noqa: F821  (from the host)
kept = []


def pipe() -> bool:
    """Make a pipe, a large one while that is allowed; False when not even the usual size is."""
    kept.append(os.pipe())
    usual = fcntl.fcntl(kept[-1][0], fcntl.F_GETPIPE_SZ) >= USUAL
    if most > 1:
        with contextlib.suppress(PermissionError):
            fcntl.fcntl(kept[-1][0], fcntl.F_SETPIPE_SZ, LARGE)
    return usual


take(pipe, most)
