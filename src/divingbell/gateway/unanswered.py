"""Questions of a server that have no answer yet: one that asks without end is given up."""

from typing import Any

import mcp_types

MAX_UNANSWERED = 256
"""The SDK makes a task for each of them, and they all wait if the server does not read."""
REASON = "it asks without waiting for answers"


class Unanswered:
    """How many there are on one connection."""

    def __init__(self) -> None:
        self._count = 0

    def heard(self, message: Any) -> bool:
        """Count what comes from the server; return whether it is still within bounds."""
        if isinstance(message, mcp_types.JSONRPCRequest):
            self._count += 1
        return self._count <= MAX_UNANSWERED

    def said(self, message: Any) -> None:
        """Count what has reached the server."""
        if isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            self._count -= 1
