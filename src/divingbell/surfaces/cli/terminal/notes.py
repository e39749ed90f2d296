"""Lines of the command itself, on stderr, apart from what the code says."""

import sys

NOTE = "· "


def tell(line: str) -> None:
    """Print a line on stderr, marked as the command's own."""
    print(NOTE + line, file=sys.stderr, flush=True)
