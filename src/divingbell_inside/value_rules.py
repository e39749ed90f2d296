"""The rules of plain data: its limits, and the errors for what is outside of them."""

import datetime
import operator
import re
from collections.abc import Callable, Collection
from typing import Any

MAX_ITEMS = 300_000
"""Values in a value, keys included."""
MAX_TEXT = 4 << 20
"""Characters of all its texts together, and of its bytes in base64."""
MAX_DEPTH = 64
"""Whoever prints or copies a value must not run out of stack."""
MAX_BITS = 4096
"""Bits of an integer. Python writes and reads longer ones in a time that grows with the square."""
MAX_DIGITS = 1300
"""Characters of a decimal number: as many as such an integer has, and a sign and an exponent."""
MAX_ZONES = 32
"""Time zones in a value: each is read from a file."""
MAX_SAME_HASH = 16
"""Keys with the same hash. Numbers can be chosen so that all have the same one, and each is then
compared with all before it. Measured: 20,000 of them take 2.5 s, in one call that nothing else in
the process can interrupt."""
MAX_CHOSEN = 4_000
"""Keys of one set or dict whose hash can be chosen: numbers, and what is made of them. Different
hashes, too, can share a way through the table, and each key then walks past all others. Measured:
30 ms at most for so many, and with 120,000 others in the way 3.4 s."""
MAX_CHOSEN_IN_ALL = 20_000
"""Such keys in a whole value."""
MAX_SHORT = 64
"""Characters of a date, a time, a time zone or a UUID."""
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,2}")
_NAME_OF_TYPE = type.__dict__["__name__"]


class NotPlain(ValueError):
    """Raised for a value that is not plain data: `place` says where in it, `reason` why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.place = ""
        self.reason = reason

    def within(self, place: str) -> "NotPlain":
        """Return it, seen from the value that holds what it was raised for."""
        self.place = place + self.place
        return self


class TooLarge(NotPlain):
    """Raised for a value that has more items or more text than is allowed."""


class InvalidData(ValueError):
    """Raised for JSON that is not the form of any plain data."""


def check_hashes(keys: Collection[Any], failure: Callable[[str], ValueError]) -> int:
    """Raise the failure for keys that Python could only tell apart one by one.

    Returns:
        How many there are whose hash can be chosen.
    """
    # Sorted, and not counted: a table of these hashes is what an attack would be on.
    chosen = sorted(hash(key) for key in keys if not _is_seeded(key))
    if len(chosen) > MAX_CHOSEN:
        raise failure(f"has more than {MAX_CHOSEN:,} keys that are not text")
    if any(map(operator.eq, chosen, chosen[MAX_SAME_HASH:])):
        raise failure("has too many keys with the same hash")
    return len(chosen)


def _is_seeded(key: Any) -> bool:
    """Whether nobody outside of this process can know its hash."""
    kind = type(key)
    if kind is datetime.datetime or kind is datetime.time:
        return key.tzinfo is None  # else it is made of numbers
    return kind is str or kind is bytes or kind is datetime.date


def is_zone(name: str) -> bool:
    """Whether it can be the name of a time zone: nothing else is looked for on the disk."""
    return len(name) <= MAX_SHORT and _ZONE.fullmatch(name) is not None


def type_name(kind: type) -> str:
    """Return the name of a type without asking its metaclass, which may do anything."""
    return str(_NAME_OF_TYPE.__get__(kind))
