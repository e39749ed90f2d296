"""A disk of the test's own that is really full: a small tmpfs, which takes root."""

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")
FILLER = "filler"
_PIECE = 4096


@contextlib.contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A disk of so many bytes at a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = f"size={size},mode=0700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", chosen, "divingbell-tests", folder], check=True)
    try:
        yield folder
    finally:
        # It goes when nobody has a file open there any more, whatever has failed before.
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """No page of the disk is free in the block."""
    filler = folder / FILLER
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(_PIECE))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    try:
        yield
    finally:
        filler.unlink()
