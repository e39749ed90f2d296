"""For tests that take away what keeps promises, and see that the checks notice."""

from divingbell import Divingbell
from divingbell.promises.check.self_check import check


async def broken(bell: Divingbell, rows: set[str]) -> set[str]:
    """The rows of these that are not kept."""
    return {verdict.promise.id async for verdict in check(bell, rows) if not verdict.kept}
