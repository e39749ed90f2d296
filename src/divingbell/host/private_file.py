"""Files that only their owner can read, and that are never half written."""

import contextlib
import os
import tempfile
from pathlib import Path

from divingbell.host import owned_folder


def read(path: Path, most: int) -> bytes | None:
    """Return a file's content; None if there is none, it is a link, larger, or of others."""
    try:
        # A pipe that somebody has put there must not hold us up.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb") as file:
            ours = owned_folder.is_ours(descriptor)
            data = file.read(most + 1) if ours else None
    except OSError:
        return None
    return data if data is not None and len(data) <= most else None


def write(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Put a file in place, mode 600, all at once; its folder is made, mode 700.

    Raises:
        FileExistsError: there is one, which is not to be replaced.
        OSError: it can't be written.
    """
    owned_folder.make(path.parent, 0o700)
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if replace:
            os.replace(draft, path)
        else:
            os.link(draft, path)
            os.unlink(draft)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
