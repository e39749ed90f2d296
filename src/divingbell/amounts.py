"""Amounts in words: a number and what it counts."""


def amount(number: int, noun: str) -> str:
    """Return "1 tool", "2 tools"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
