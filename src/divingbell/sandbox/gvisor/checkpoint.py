"""Checkpoints: a warmed interpreter that runsc has saved once, for sessions to be restored from.

They lie beside the root that they belong to, in a folder that only root may enter. Nothing but
our own code and the packages of the profile has run in what was saved, and it has no token.
Where runsc can't save or restore one, its words are kept in its place.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from divingbell.host import owned_folder
from divingbell.sandbox.contained.root import Root
from divingbell.sandbox.gvisor.runsc import Runsc

FOLDER = "checkpoints"
MARKER = "divingbell-checkpoint.json"
FORMAT = 1
"""Raised when what is saved is to be made in another way."""
KEPT = 4
"""How many a root has at most: each other size of disk, for one, takes another."""
REFUSAL_COUNTS = 24 * 3600.0
"""Seconds until what runsc could not do is tried again."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A warmed interpreter that runsc has saved, or the reason why it could not."""

    path: Path
    program: str
    """The runsc that it is for: no other reads it."""
    refusal: str
    made: float
    """When, as time() counts."""

    def refuse(self, reason: str) -> None:
        """Restore nothing from it from now on; say why to whoever asks."""
        _write(self.path, self.program, reason)


def key_of(program: Runsc, description: dict[str, Any], preload: Sequence[str]) -> str:
    """Name all that goes into what is saved; `description` is one without a token.

    Only what is mounted from outside may differ between what is saved and what is restored.
    """
    mounts = [{**mount, "source": ""} for mount in description["mounts"]]
    parts = [FORMAT, _identity(program), list(preload), {**description, "mounts": mounts}]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def find(root: Root, key: str) -> Checkpoint | None:
    """Return the one of this name, None if there is none or what it says no longer counts."""
    found = _read(_above(root) / key)
    if found is not None and found.refusal and time.time() - found.made > REFUSAL_COUNTS:
        return None
    return found


def every(root: Root, program: Runsc | None = None) -> list[Checkpoint]:
    """All that this root has, the newest first; those of `program` only, if it is given."""
    folders = (marker.parent for marker in _above(root).glob(f"[!.]*/{MARKER}"))
    found = [each for folder in folders if (each := _read(folder)) is not None]
    if program is not None:
        found = [each for each in found if each.program == _identity(program)]
    return sorted(found, key=lambda each: each.made, reverse=True)


def stale(root: Root, program: Runsc) -> list[Checkpoint]:
    """Those that another runsc has made, and refusals."""
    current = every(root, program)
    return [each for each in every(root) if each not in current or each.refusal]


def remove(checkpoint: Checkpoint) -> None:
    shutil.rmtree(checkpoint.path, ignore_errors=True)


@contextlib.contextmanager
def making(root: Root, key: str) -> Iterator[Path | None]:
    """Give an empty folder to save into, None while another process makes one. Then `keep` it."""
    above = _above(root)
    owned_folder.make(above, 0o700)
    lock = os.open(above / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    building = above / ".building"
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if find(root, key) is not None:  # since we last looked
            yield None
            return
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(mode=0o700)
        try:
            yield building
        finally:
            shutil.rmtree(building, ignore_errors=True)
            fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)


def keep(root: Root, key: str, program: Runsc, refusal: str = "") -> None:
    """Let what is in the folder of `making` be found, or the reason why there is nothing."""
    above = _above(root)
    _write(above / ".building", _identity(program), refusal)
    shutil.rmtree(above / key, ignore_errors=True)
    (above / ".building").rename(above / key)
    for old in every(root)[KEPT:]:
        remove(old)


def _above(root: Root) -> Path:
    return root.path.parent / FOLDER


def _identity(program: Runsc) -> str:
    found = os.stat(program.program)
    words = ("runsc", program.version, *program.options)
    return " ".join((*words, f"{found.st_size}-{found.st_mtime_ns}"))


def _read(path: Path) -> Checkpoint | None:
    try:
        content = json.loads((path / MARKER).read_bytes())
        made = (path / MARKER).stat().st_mtime
        return Checkpoint(path, str(content["program"]), str(content["refusal"]), made)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(path: Path, program: str, refusal: str) -> None:
    text = json.dumps({"program": program, "refusal": refusal})
    building = path / f".{MARKER}"
    building.write_text(text)
    building.rename(path / MARKER)
    if refusal:
        for saved in path.glob("*.img"):
            saved.unlink(missing_ok=True)
