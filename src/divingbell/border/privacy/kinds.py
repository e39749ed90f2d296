"""The kinds of what is found: those that settings know, and which of two counts."""

from divingbell.settings.kinds import KINDS, PERSONAL, SECRETS, Kind, Sort

__all__ = ["KINDS", "PERSONAL", "SECRETS", "Kind", "Sort", "rank"]

_RANKS = {name: rank for rank, name in enumerate(KINDS)}


def rank(name: str) -> int:
    """Return the place of a kind among all. Those of the settings come first: they were meant."""
    return _RANKS.get(name, -1)
