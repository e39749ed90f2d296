"""Sources of code that has no file: cells, and skills."""

import linecache


def remember(name: str, source: str) -> None:
    """Let tracebacks and `inspect` find the lines of a piece of code."""
    # Like a file that ends in a newline: the traceback module counts on it for its carets.
    lines = [line + "\n" for line in source.split("\n")]
    linecache.cache[name] = (len(source), None, lines, name)
