"""Replicas: several processes that serve the same users, and how one of them speaks to the others.

In the newer era a request may come to any of them. What one replica alone holds is named in what
the client carries, so that another one can pass the request on.
"""

import secrets
from collections.abc import Mapping
from typing import Any, Protocol

import mcp_types as types
from mcp import MCPError


class Replicas(Protocol):
    """This replica, and the way to the others."""

    name: str
    """The name of this one: letters and digits; empty where it is the only one."""
    key: bytes
    """What seals the states that clients carry; all have the same."""

    async def resume(self, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have the replica of that name go on with a call that it keeps (see
        `SuspendedCalls.resume_for`).

        Raises:
            MCPError: it has gone.
        """

    def tell(self, told: Mapping[str, Any]) -> None:
        """Tell all others of something (see `Subscriptions.heard`)."""


class Alone:
    """The only replica: an ordinary server."""

    name = ""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(32)

    async def resume(self, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        raise expired()

    def tell(self, told: Mapping[str, Any]) -> None:
        pass


def expired() -> MCPError:
    """Return the error for a call that nobody keeps."""
    return MCPError(types.INVALID_PARAMS, "Invalid or expired requestState")
