"""The writer of plain data in its JSON form."""

import base64
import datetime
import decimal
import uuid
import zoneinfo
from collections.abc import Callable, Collection
from typing import Any

from divingbell_inside import scalars
from divingbell_inside import value_rules as rules
from divingbell_inside.value_rules import NotPlain, TooLarge

MAX_SHOWN_KEY = 60
_BASES_OF_TYPE = type.__dict__["__mro__"]


class Writer:
    """Writes one value: so many items, so many characters of text. Only exact types are taken."""

    def __init__(self, items: int, text: int) -> None:
        self._items = items
        self._room = text

    def write(self, value: Any, depth: int) -> Any:
        self._items -= 1
        if self._items < 0:
            raise TooLarge("has too many items")
        if depth > rules.MAX_DEPTH:
            raise NotPlain("is nested too deeply")
        kind = type(value)
        # A metaclass could make the type itself answer as it likes; no plain type has one.
        writer = _WRITERS.get(kind) if type(kind) is type else None
        if writer is None:
            value = scalars.as_python(value)
            writer = _WRITERS.get(type(value)) if type(value) is not kind else None
        if writer is None:
            raise NotPlain(_described(kind))
        return writer(self, value, depth)

    def _number(self, value: int, depth: int) -> int:
        if value.bit_length() > rules.MAX_BITS:
            raise NotPlain(f"is a number of more than {rules.MAX_BITS} bits")
        return value

    def _float(self, value: float, depth: int) -> Any:
        return value if value - value == 0 else {"$float": repr(value)}

    def _text(self, value: str, depth: int) -> str:
        self._take_text(len(value))
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise NotPlain("is a text with half a character (a lone surrogate)") from None
        return value

    def _bytes(self, value: bytes, depth: int) -> Any:
        self._take_text((len(value) + 2) // 3 * 4)
        return {"$bytes": base64.b64encode(value).decode()}

    def _take_text(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise TooLarge("has too much text")

    def _list(self, value: Collection[Any], depth: int) -> list[Any]:
        self._check_room(len(value))
        made: list[Any] = []
        try:
            for item in value:
                made.append(self.write(item, depth + 1))
        except NotPlain as error:
            raise error.within(f"[{len(made)}]") from None
        return made

    def _tuple(self, value: tuple[Any, ...], depth: int) -> Any:
        return {"$tuple": self._list(value, depth)}

    def _set(self, value: Collection[Any], depth: int) -> Any:
        return {"$set": self._members(value, depth)}

    def _frozenset(self, value: Collection[Any], depth: int) -> Any:
        return {"$frozenset": self._members(value, depth)}

    def _members(self, value: Collection[Any], depth: int) -> Any:
        self._check_room(len(value))
        try:
            made = [self.write(item, depth + 1) for item in value]
        except NotPlain as error:
            error.place = "[…]"
            raise
        rules.check_hashes(value, NotPlain)
        return made

    def _dict(self, value: dict[Any, Any], depth: int) -> Any:
        self._check_room(len(value))
        if not all(type(key) is str and not key.startswith("$") for key in value):
            return self._pairs(value, depth)
        made: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                made[self.write(key, depth)] = self.write(item, depth + 1)
        except NotPlain as error:
            raise error.within(_place_of(key)) from None
        return made

    def _pairs(self, value: dict[Any, Any], depth: int) -> Any:
        made: list[Any] = []
        key: Any = None
        try:
            for key, item in value.items():
                made.append([self.write(key, depth + 1), self.write(item, depth + 1)])
        except NotPlain as error:
            raise error.within(_place_of(key)) from None
        rules.check_hashes(value, NotPlain)
        return {"$dict": made}

    def _check_room(self, count: int) -> None:
        if count > self._items:
            raise TooLarge("has too many items")

    def _date(self, value: datetime.date, depth: int) -> Any:
        return {"$date": value.isoformat()}

    def _datetime(self, value: datetime.datetime, depth: int) -> Any:
        return {"$datetime": self._moment(value)}

    def _time(self, value: datetime.time, depth: int) -> Any:
        return {"$time": self._moment(value)}

    def _moment(self, value: datetime.datetime | datetime.time) -> Any:
        """Return ISO 8601; where that does not say all, a list with what it leaves out."""
        more: dict[str, Any] = {"fold": 1} if value.fold else {}
        zone = value.tzinfo
        if type(zone) is zoneinfo.ZoneInfo:
            if type(zone.key) is not str or not rules.is_zone(zone.key):
                raise NotPlain("has a time zone without a name that others know")
            more["zone"] = zone.key
            value = value.replace(tzinfo=None)
        elif type(zone) is datetime.timezone:
            name = zone.tzname(None)
            if name != datetime.timezone(zone.utcoffset(None)).tzname(None):
                more["name"] = self._text(name, 0)
        elif zone is not None:
            raise NotPlain(f"has a time zone of the type {rules.type_name(type(zone))}")
        return [value.isoformat(), more] if more else value.isoformat()

    def _timedelta(self, value: datetime.timedelta, depth: int) -> Any:
        return {"$timedelta": [value.days, value.seconds, value.microseconds]}

    def _decimal(self, value: decimal.Decimal, depth: int) -> Any:
        text = str(value)
        if len(text) > rules.MAX_DIGITS:
            raise NotPlain(f"is a decimal number of more than {rules.MAX_DIGITS} characters")
        self._take_text(len(text))
        return {"$decimal": text}

    def _complex(self, value: complex, depth: int) -> Any:
        return {"$complex": [self._float(value.real, 0), self._float(value.imag, 0)]}

    def _uuid(self, value: uuid.UUID, depth: int) -> Any:
        return {"$uuid": str(value)}


_WRITERS: dict[type, Callable[[Writer, Any, int], Any]] = {
    type(None): lambda writer, value, depth: value,
    bool: lambda writer, value, depth: value,
    int: Writer._number,
    float: Writer._float,
    str: Writer._text,
    bytes: Writer._bytes,
    list: Writer._list,
    tuple: Writer._tuple,
    set: Writer._set,
    frozenset: Writer._frozenset,
    dict: Writer._dict,
    datetime.date: Writer._date,
    datetime.datetime: Writer._datetime,
    datetime.time: Writer._time,
    datetime.timedelta: Writer._timedelta,
    decimal.Decimal: Writer._decimal,
    complex: Writer._complex,
    uuid.UUID: Writer._uuid,
}


def _described(kind: type) -> str:
    name = rules.type_name(kind)
    bases = [rules.type_name(base) for base in _BASES_OF_TYPE.__get__(kind) if _is_plain_type(base)]
    return f"is of the type {name}, a kind of {bases[0]}" if bases else f"is of the type {name}"


def _is_plain_type(kind: type) -> bool:
    return type(kind) is type and kind in _WRITERS


def _place_of(key: Any) -> str:
    """Return the place of an item with this key, as code would write it."""
    if type(key) is str and len(key) <= MAX_SHOWN_KEY:
        return f".{key}" if key.isidentifier() else f"[{key!r}]"
    return f"[{key}]" if type(key) is int and key.bit_length() <= MAX_SHOWN_KEY else "[…]"
