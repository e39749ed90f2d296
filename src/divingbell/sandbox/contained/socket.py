"""The socket by which a container reaches the host, alone in a folder that only it has mounted.

Whoever knows the token may connect, once. Then the socket and its name are gone: code inside that
looks for them finds an empty folder.
"""

import asyncio
import contextlib
import hmac
import os
import secrets
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from divingbell_inside import layout

MAX_TOKEN = 256
TOKEN_TIMEOUT = 10.0
_CREDENTIALS = struct.Struct("3i")


class ContainerSocket:
    """A unix socket of the host that takes one connection, from the container that has the token.

    It listens from its making until that has connected, or it is closed.
    """

    def __init__(self, folder: Path) -> None:
        self.token = secrets.token_hex(32)
        self._path = folder / Path(layout.SOCKET).name
        self._note = folder / Path(layout.TOKEN_FILE).name
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A name of a socket has 107 bytes at most, and the folder may be anywhere.
            self._listener.bind(f"/proc/self/fd/{above}/{self._path.name}")
        finally:
            os.close(above)
        # For a uid that is not ours; nobody else gets past the folder above.
        self._path.chmod(0o666)
        self._listener.setblocking(False)
        self._listener.listen(1)

    def leave_token(self) -> None:
        """Lay the token beside the socket, for a container that can't be given it otherwise."""
        self._note.write_text(self.token)
        self._note.chmod(0o644)

    async def accept(self, is_expected: Callable[[int], bool]) -> socket.socket:
        """Wait for the one who knows the token, return the connection, and close the socket.

        `is_expected` tells of the pid of whoever connects whether it belongs to the container.
        """
        loop = asyncio.get_running_loop()
        while True:
            line, _ = await loop.sock_accept(self._listener)
            try:
                line.setblocking(False)
                async with asyncio.timeout(TOKEN_TIMEOUT):
                    token = await loop.sock_recv(line, MAX_TOKEN)
                known = hmac.compare_digest(token, self.token.encode())
                if known and is_expected(_pid_of_peer(line)):
                    self.close()
                    return line
            except (OSError, TimeoutError):
                pass
            except BaseException:
                line.close()
                raise
            line.close()

    def close(self) -> None:
        self._listener.close()
        for path in (self._path, self._note):
            with contextlib.suppress(OSError):
                path.unlink()


def _pid_of_peer(line: socket.socket) -> int:
    found = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(found)[0]
    return pid
