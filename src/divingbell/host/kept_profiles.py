"""The profiles that are kept on this machine: which there are, and the way to be rid of them.

One takes some 400 MB, and every change of packages, of Divingbell or of Python makes another.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from divingbell.host import holding, owned_folder, profile
from divingbell.host.profile import MARKER, Progress

MOST = 1_000
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Kept:
    """A profile as it lies there."""

    path: Path
    python: str
    """The version of its Python."""
    requirements: tuple[str, ...]
    """The packages that were asked for besides those of every profile."""
    used: float
    """The time of its last use, in seconds since 1970."""
    is_current: bool
    """Whether it is the one for the settings at hand."""

    @property
    def days_unused(self) -> int:
        return max(0, int((time.time() - self.used) // _DAY))

    def size(self) -> int:
        """The bytes that it takes on the disk."""
        return sum(
            os.lstat(os.path.join(parent, name)).st_blocks * 512
            for parent, _, names in os.walk(self.path)
            for name in names
        )

    def in_use(self) -> bool:
        """Whether a process that runs holds it."""
        try:
            with holding.unused(self.path):
                return False
        except holding.InUse:
            return True


def all_kept(packages: Sequence[str]) -> list[Kept]:
    """Return all that there are; the one for these packages is current.

    Raises:
        ProfileError: the packages are no requirements.
        NotOurs: another user could change what is in the folder.
    """
    current = profile.find(packages)
    path = None if current is None else current.path
    return [_read(marker, path) for marker in _markers()]


def remove(kept: Kept, report: Progress) -> None:
    """Remove one that nobody uses.

    Raises:
        InUse: a process that runs holds it.
    """
    folder = kept.path
    with (
        profile.locked(profile.lock_of(folder), report),
        holding.removing(folder, folder.with_name(f".{folder.name}.removing")),
    ):
        pass


def clear_up(report: Progress) -> None:
    """Remove what processes that were killed have left half made, or half removed."""
    for left in sorted(_folder().glob(".*.building")) + sorted(_folder().glob(".*.removing")):
        name = left.name.rpartition(".")[0]
        with profile.locked(left.with_name(f"{name}.lock"), report):
            shutil.rmtree(left, ignore_errors=True)


def _folder() -> Path:
    return profile.home() / "profiles"


def _markers() -> Iterator[Path]:
    if owned_folder.check(_folder()):
        # Those with a dot are not whole.
        yield from sorted(_folder().glob(f"[!.]*/{MARKER}"))[:MOST]


def _read(marker: Path, current: Path | None) -> Kept:
    try:
        content = json.loads(marker.read_bytes())
        python, asked = str(content["version"]), tuple(map(str, content.get("requirements", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        python, asked = "?", ()
    path = marker.parent
    try:
        used = profile.lock_of(path).stat().st_mtime
    except FileNotFoundError:
        used = marker.stat().st_mtime
    return Kept(path, python, asked, used, path == current)
