"""The handshake with a container that has connected: what it is to do, and whether it can."""

import asyncio
import json
import os
import socket
from typing import Any

from divingbell.errors import SandboxUnavailable
from divingbell.models import Limits
from divingbell.settings.config import Settings

MAX_MESSAGE = 1 << 16


async def greet(
    line: socket.socket,
    settings: Settings,
    limits: Limits,
    *,
    in_gvisor: bool,
    uid: int | None = None,
    to_be_saved: bool = False,
) -> dict[str, Any]:
    """Say what to load and what may be used; return what the container says about itself.

    `uid` is whom the user's code shall be, where the container's first process is root of gVisor.
    One that is `to_be_saved` then closes the line, and waits to be restored.

    Raises:
        SandboxUnavailable: it could not get ready, or is no gVisor where it should be.
    """
    loop = asyncio.get_running_loop()
    host = os.uname()
    wanted = {
        "preload": settings.preload,
        "disk": limits.disk,
        "processes": limits.processes,
        "open_files": limits.open_files,
        "memory": limits.memory,
        "in_gvisor": in_gvisor,
        "uid": uid,
        "host_kernel": [host.release, host.version],
        "to_be_saved": to_be_saved,
    }
    try:
        await loop.sock_sendall(line, json.dumps(wanted).encode())
        answer = await loop.sock_recv(line, MAX_MESSAGE)
    except OSError as error:
        raise SandboxUnavailable(f"the container closed its connection: {error.strerror}") from None
    if not answer.startswith(b"{"):
        words = answer.removeprefix(b"failed ").decode("utf-8", "replace")[:400]
        raise SandboxUnavailable(
            f"the container did not get ready: {words or 'it ended'}. See `divingbell doctor`"
        )
    # Nothing but our own code and the packages of the profile has run in there so far.
    info = json.loads(answer)
    assert isinstance(info, dict)
    return info
