"""Amounts in words: a number and what it counts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limits import RateLimitItem


def amount(number: int, noun: str) -> str:
    """Return "1 tool", "2 tools"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def rate(item: "RateLimitItem") -> str:
    """Return "60 a minute", "2 an hour", "5 in 2 days"."""
    unit = item.GRANULARITY.name
    if item.multiples > 1:
        return f"{item.amount:,} in {amount(item.multiples, unit)}"
    return f"{item.amount:,} {'an' if unit == 'hour' else 'a'} {unit}"
