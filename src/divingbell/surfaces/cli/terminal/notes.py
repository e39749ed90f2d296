"""Lines of the command itself, on stderr, apart from what the code says."""

import sys

NOTE = "· "


def tell(line: str) -> None:
    """Say a line."""
    print(NOTE + line, file=sys.stderr, flush=True)
