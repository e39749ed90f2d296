"""Heads in their second place: a file of signed lines for each chain, in a folder of its own."""

import errno
import os
from pathlib import Path

from divingbell.audit.chain import Link
from divingbell.audit.segments import now
from divingbell.audit.signing import Head, Key, NotSigned, claimed_number, head_in
from divingbell.host import owned_folder

ENDING = ".heads"
MOST_FILE = 64 << 20
"""Bytes of a file of heads that are read: its end. One head a second fills that in two days."""
_ADDED = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Heads:
    """Writes the signed heads of one chain. Not for two threads at once."""

    def __init__(self, folder: Path, chain: str, key: Key) -> None:
        self.folder = folder
        self.last = Link()
        """The one that was written last."""
        self._chain = chain
        self._key = key
        self._file = -1

    def write(self, link: Link) -> None:
        """Sign how far the chain goes, and have that on the disk.

        Raises:
            OSError: it can't be written.
        """
        if self._file < 0:
            owned_folder.make(self.folder, 0o700)
            self._file = os.open(self.folder / f"{self._chain}{ENDING}", _ADDED, 0o600)
        # With a line of its own before it: what a full disk has cut is then a line of its own, too.
        data = b"\n" + self._key.signed(Head(self._chain, link, now()))
        if os.write(self._file, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fdatasync(self._file)
        self.last = link

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def chains(folder: Path) -> list[str]:
    """Return the chains that there are heads of."""
    if not folder.is_dir():
        return []
    return sorted(path.stem for path in folder.glob(f"*{ENDING}"))


def newest(folder: Path, chain: str, public: str) -> tuple[Head | None, int]:
    """Return the furthest head of a chain that this key has signed, and how many lines that claim
    to go further it has not. All before a head is proven by it: others need no look.

    Raises:
        OSError: they can't be read.
    """
    try:
        with open(folder / f"{chain}{ENDING}", "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MOST_FILE))
            lines = file.read(MOST_FILE).splitlines()[size > MOST_FILE :]
    except FileNotFoundError:
        return None, 0
    claims = sorted(filter(None, lines), key=claimed_number, reverse=True)
    for others, line in enumerate(claims):
        try:
            head = head_in(line, public)
        except NotSigned:
            continue
        if head.chain == chain:
            return head, others
    return None, len(claims)
