"""What shapes of numbers begin and end with: a number is no part of a longer one."""

# Not after a decimal point, nor as a later part of a UUID.
AT = r"(?:(?<![\w.])(?<![0-9a-fA-F]-)|(?<=\\[nrt]))"
"""Where a number begins, in a pattern."""
TO = r"(?![\w])(?!\.\d)(?!-\d)(?!-[0-9a-f]{4})"
"""Where it ends, in a pattern."""


def gate(expression: str) -> str:
    """Return a gate for a number of this expression. Before a text there is a line end for it."""
    return rf"(?:[^\w.]|\\[nrt])(?:{expression})\b"
