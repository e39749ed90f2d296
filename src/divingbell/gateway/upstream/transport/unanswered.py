"""Questions of a server that have no answer yet: one that asks without end is given up."""

from typing import Any

import mcp_types

from divingbell.shares import weight

MAX_UNANSWERED = 256
"""The SDK makes a task for each of them, and they all wait if the server does not read."""
MAX_PARTS, MAX_TEXT = 5_000, 1 << 20
"""Limits of one question or notification. An answer may be larger: somebody has asked for it."""

TOO_LARGE = "it sent a question or a notification that is far too large"


class Unanswered:
    """The number of them on one connection."""

    def __init__(self) -> None:
        self._count = 0

    def count_received(self, message: Any) -> str | None:
        """Count what comes from the server; return why it is to be given up, if it is."""
        if weight.is_large(getattr(message, "params", None), MAX_PARTS, MAX_TEXT):
            return TOO_LARGE
        if isinstance(message, mcp_types.JSONRPCRequest):
            self._count += 1
        if self._count > MAX_UNANSWERED:
            return f"it asked more than {MAX_UNANSWERED} questions without waiting for an answer"
        return None

    def count_sent(self, message: Any) -> None:
        """Count what has reached the server."""
        if isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            self._count -= 1
