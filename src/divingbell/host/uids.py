"""A uid of its own for every session that root starts.

Host processes share the configured range: each takes one block of it, held by a lock on a file
that the kernel releases when the process ends, however it ends.
"""

import fcntl
import os
from pathlib import Path

from divingbell.errors import SandboxUnavailable
from divingbell.host import owned_folder

BLOCK = 1024
_LOCKS = Path("/run/divingbell")


class Uids:
    """One block of uids. The first belongs to the zygote, the others go round."""

    def __init__(self, base: int, count: int, locks: Path = _LOCKS) -> None:
        owned_folder.make(locks, 0o700)
        for number in range(count // BLOCK):
            path = locks / f"uids-{base}-{number}.lock"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                continue
            self._descriptor = descriptor
            self.first = base + number * BLOCK
            self._free = list(range(1, BLOCK))
            return
        raise SandboxUnavailable(
            f"all {count // BLOCK} blocks of uids from {base} are taken by other processes: "
            "raise uid_count in divingbell.toml"
        )

    def take(self) -> int:
        """Return the number of a free uid within the block.

        Raises:
            SandboxUnavailable: all are in use.
        """
        if not self._free:
            raise SandboxUnavailable(
                f"one process can have {BLOCK - 1} sessions: close some, or start another process"
            )
        return self._free.pop(0)

    def give_back(self, number: int) -> None:
        self._free.append(number)

    def close(self) -> None:
        # Said explicitly: a child that this process has forked may hold the descriptor too.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
