"""Moments: times as clients read them."""

from datetime import UTC, datetime

LAST = 253_402_300_799.0
"""The last second that a date can tell: code and clients can name any time."""


def as_text(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601, in UTC; the last one for any after it."""
    return datetime.fromtimestamp(min(seconds, LAST), UTC).isoformat(timespec="milliseconds")
