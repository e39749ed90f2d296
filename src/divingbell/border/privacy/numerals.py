"""What shapes of numbers begin and end with: a number is no part of a longer one."""

JOINED = r"[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""A letter or digit that is one word with a number beside it: in Thai, Chinese, Japanese and Korean
there are no blanks."""
# Not after a decimal point, nor as a later part of a UUID.
AT = rf"(?:(?<!{JOINED})(?<!\.)(?<![0-9a-fA-F]-)|(?<=\\[nrt]))"
"""Where a number begins, in a pattern."""
TO = rf"(?!{JOINED})(?!\.\d)(?!-\d)(?!-[0-9a-f]{{4}})"
"""Where it ends, in a pattern."""


def gate(expression: str) -> str:
    """Return a gate for a number of this expression. Before a text there is a line end for it."""
    return rf"(?:[^\w.]|\\[nrt])(?:{expression})\b"
