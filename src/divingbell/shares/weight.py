"""The weight of JSON: the memory that parsing takes, told from its bytes before that is done.

A megabyte of text is a megabyte once parsed. A megabyte of `[],[],…` is thirty, and takes a
hundred times as long, in one call of C that nothing else in this process can interrupt. So sizes
in bytes say little, and whatever others send is weighed as well.
"""

import functools
import time
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from operator import attrgetter
from typing import Any, TypeVar

from divingbell.shares.turns import Turns
from divingbell.shares.workers import WORKERS

Value = TypeVar("Value")
Made = TypeVar("Made")

UNIT = 64
"""Bytes of memory for each unit of weight, about. Measured: parsing takes some 60 ns for it."""
MAX_RESULT = 1_000_000
"""Of one message of a server. Measured: it is parsed within some 60 ms. That is a table of 16,000
rows with ten columns; a text weighs next to nothing, whatever is in it."""
MAX_ARGUMENTS = 400_000
"""Of what comes from code and from clients. Measured: our own strict reading of it takes twice as
long."""
MAX_CONTAINERS = 20_000
"""Lists and objects in arguments. Measured: the SDK takes 2 µs to write each of them down."""
LARGE_TEXT = 1 << 18
LARGE_COUNT = 2_000
"""Characters, and parts, of a value beyond which work on it is done in a thread."""
_PLAIN = frozenset({int, float, bool, type(None)})
_GROUPS = frozenset({list, tuple, set, frozenset})
_CONTAINERS = _GROUPS | {dict}
_TEXTS = (str, bytes)
_CHUNK = 1 << 16
CONTAINER = 8
"""The weight of a list or an object, and no byte has more; a sign weighs one."""
_SMALL = b",:.eE"
"""1e1 is a float without a point; true and false weigh two for it."""
_NO_SIGN = bytes(set(range(256)) - set(b"[{" + _SMALL))


TURNS: ContextVar[Turns | None] = ContextVar("turns", default=None)
"""The turns of whoever this task works for. What is done in threads counts there: threads take
their time from the event loop, since only one of them runs Python at a time."""


class Scale:
    """Weighs JSON as it comes, piece by piece. What is in texts does not count."""

    def __init__(self) -> None:
        self.weight = 0
        self.containers = 0
        """Lists and objects among it."""
        self._in_text = False
        self._rest = b""

    def add(self, piece: bytes) -> None:
        for start in range(0, len(piece), _CHUNK):
            self._add(piece[start : start + _CHUNK])

    def _add(self, chunk: bytes) -> None:
        plain = self._rest + chunk
        if b"\\" in plain:
            # Without what is escaped, each quote begins or ends a text.
            plain = plain.replace(b"\\\\", b"").replace(b'\\"', b"")
        self._rest = b"\\" if plain.endswith(b"\\") else b""
        parts = plain.split(b'"')
        outside = b"".join(parts[self._in_text :: 2])
        self._in_text ^= len(parts) % 2 == 0
        # However many signs there are: to count each kind takes four times as long.
        signs = outside.translate(None, _NO_SIGN)
        containers = signs.translate(None, _SMALL)
        self.containers += len(containers)
        quotes = len(parts) - 1  # a text weighs two
        self.weight += quotes + len(signs) + len(containers) * (CONTAINER - 1)


def cost(size: int, weight: int) -> int:
    """Return the bytes of memory that a message takes: as it came, as its text, and parsed."""
    return 2 * size + UNIT * weight


def weight_of(data: bytes, most: int) -> int:
    """Return the weight of JSON; of one that weighs more than `most`, any number above that."""
    return _weighed(data, most).weight


def is_heavier(data: bytes | bytearray, most: int) -> bool:
    """Whether JSON weighs more than `most`. What is short enough is not looked at."""
    return len(data) * CONTAINER > most and weight_of(bytes(data), most) > most


def are_too_heavy(arguments: bytes) -> bool:
    """Whether arguments hold more than is parsed, and passed on, within some 50 ms."""
    scale = _weighed(arguments, MAX_ARGUMENTS)
    return scale.weight > MAX_ARGUMENTS or scale.containers > MAX_CONTAINERS


def _weighed(data: bytes, most: int) -> Scale:
    scale = Scale()
    for start in range(0, len(data), _CHUNK):
        scale.add(data[start : start + _CHUNK])
        if scale.weight > most:
            break
    return scale


async def beside(
    work: Callable[[Value], Made], value: Value, count: int = LARGE_COUNT, text: int = LARGE_TEXT
) -> Made:
    """Do work on a value: at once, or in a thread if it is large, so that nobody else waits."""
    if not is_large(value, count, text):
        return work(value)
    return await in_thread(lambda: work(value))


async def in_thread(work: Callable[[], Made]) -> Made:
    """Do work in a thread, charged to whoever this task works for: for each one at a time.

    Several would be done no sooner, and the event loop would have to wait for each of them.
    Measured: for up to 90 ms, beside 100 calls with heavy arguments.
    """
    turns = TURNS.get()
    if turns is None:
        return await WORKERS.do(work)
    async with turns.thread:
        return await charged(work, turns.charge)


def charging() -> Callable[[float], object]:
    """Return what takes the processor time that is spent for whoever this task works for."""
    turns = TURNS.get()
    return charge_nobody if turns is None else turns.charge


def charge_nobody(seconds: float) -> None:
    """Take time that is spent for nobody in particular."""


async def charged(work: Callable[[], Made], charge: Callable[[float], object]) -> Made:
    """Do work in a thread; `charge` gets the processor time that it took."""
    seconds = 0.0

    def keep(taken: float) -> None:
        nonlocal seconds
        seconds = taken

    try:
        return await WORKERS.do(lambda: timed(work, keep))
    finally:
        charge(seconds)


def timed(work: Callable[[], Made], charge: Callable[[float], object]) -> Made:
    """Do work here and now; `charge` gets the processor time that it took."""
    began = time.thread_time()
    try:
        return work()
    finally:
        charge(time.thread_time() - began)


def is_large(value: Any, count: int = LARGE_COUNT, text: int = LARGE_TEXT) -> bool:
    """Whether a value that was parsed has more parts, or more text, than this."""
    left: list[Any] = [value]
    while left and count >= 0 and text >= 0:
        item = left.pop()
        kind = item.__class__
        if kind in _PLAIN:  # most parts are
            continue
        if kind is str or (kind not in _CONTAINERS and isinstance(item, _TEXTS)):
            text -= len(item)
            continue
        parts, names = _parts_of(item, kind)
        count -= len(parts)
        if count >= 0:
            left += parts
            if names:
                text -= sum(len(str(name)) for name in names)
    return count < 0 or text < 0


def _parts_of(item: Any, kind: type) -> tuple[Collection[Any], Collection[Any]]:
    """Return the parts of a value, and their names where those are its own."""
    if kind in _GROUPS:
        return item, ()
    if kind is dict:
        return item.values(), item
    # Records before mappings: to ask whether something is one takes as long as all of their fields.
    if (parts_of := _record_of(kind)) is not None:
        return parts_of(item), ()
    if isinstance(item, Mapping):
        return item.values(), item
    if isinstance(item, list | tuple | set | frozenset):
        return item, ()
    return (vars(item).values() if hasattr(kind, "__pydantic_fields__") else ()), ()


@functools.lru_cache(maxsize=1024)
def _record_of(kind: type) -> Callable[[Any], Collection[Any]] | None:
    """What gets the fields of a dataclass; None for any other class."""
    names = tuple(getattr(kind, "__dataclass_fields__", ()))
    if len(names) > 1:
        return attrgetter(*names)  # all in one call of C
    return (lambda item: (getattr(item, names[0]),)) if names else None
