"""Moments: times as clients read them."""

from datetime import UTC, datetime


def as_text(seconds: float) -> str:
    """Return a time in seconds since 1970 as ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
