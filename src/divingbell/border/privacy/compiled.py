"""Compiled expressions, kept from one start to the next: to make them takes two thirds of a second,
to read them a third of a millisecond."""

import hashlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from divingbell import logs
from divingbell.host import owned_folder, private_file, profile

log = logs.logger("divingbell")

MOST = 64 << 20
"""Bytes of one that is read; all kinds together have two million."""
MOST_KEPT = 16
"""Files; those that were made first go."""


def kept_or_made(what: str, make: Callable[[], Any]) -> Any:
    """Return the database of Hyperscan for these expressions, written down as `what`.

    A file is read only if it is this user's own: what is in it is trusted.
    """
    import hyperscan

    name = hashlib.sha256(f"{version('hyperscan')}\n{what}".encode()).hexdigest()
    path = profile.home() / "expressions" / f"{name[:32]}.hs"
    head = f"{name}\n".encode()
    data = _ours(path)
    if data is not None and data.startswith(head):
        try:
            return hyperscan.loadb(data.removeprefix(head), hyperscan.HS_MODE_BLOCK)
        except hyperscan.error as error:  # made on another kind of machine
            log.info("%s can't be used, and is made anew: %s", path, error)
    made = make()
    _keep(path, head + hyperscan.dumpb(made))
    return made


def _ours(path: Path) -> bytes | None:
    try:
        owned_folder.check(path.parent)
    except OSError as error:
        log.warning("compiled expressions are not read: %s", error)
        return None
    return private_file.read(path, MOST)


def _keep(path: Path, data: bytes) -> None:
    try:
        private_file.write(path, data)
        others = sorted(path.parent.glob("*.hs"), key=lambda each: each.stat().st_mtime)
        for old in others[:-MOST_KEPT]:
            old.unlink(missing_ok=True)
    except OSError as error:
        log.info("compiled expressions can't be kept in %s: %s", path, error)
