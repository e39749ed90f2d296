"""The tests' own MCP server, behind a Divingbell."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from divingbell import Divingbell, Session

PATH = Path(__file__).parents[1] / "servers" / "galley.py"
ENTRY: Mapping[str, Any] = {"command": sys.executable, "args": [str(PATH)]}


@asynccontextmanager
async def galley(
    policy: Mapping[str, Any] | None = None,
    entry: Mapping[str, Any] | None = None,
    servers: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[Divingbell, Session]]:
    """A Divingbell with the galley's tools, and a session of `ann`'s."""
    settings.setdefault("search", "words")  # the same, whether meaning is installed or not
    settings.setdefault("preload", [])  # pandas has no part in this, and takes a while to load
    all_servers = {"galley": {**ENTRY, **(entry or {})}, **(servers or {})}
    async with (
        Divingbell(pool=0, servers=all_servers, policy=policy, **settings) as bell,
        bell.session(user="ann") as session,
    ):
        yield bell, session
