"""Plain data, written as JSON that says what each value is, and read again exactly as it was.

Ordinary JSON stands for itself. Everything else is an object with one key that begins with `$`:
`{"$date": "2026-11-17"}`, `{"$set": [1, 2]}`. Host and inside share this file. Only exact types
are taken: a subclass may hold more than the text or number that it looks like. What is read may
come from hostile code, so every step of reading is bounded, and nothing is guessed.
"""

import base64
import datetime
import decimal
import json
import math
import re
import uuid
import zoneinfo
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from divingbell_inside import frames, scalars

MAX_ITEMS = 300_000
"""Values in a value, keys included."""
MAX_TEXT = 4 << 20
"""Characters of all its texts together, and of its bytes in base64."""
MAX_DEPTH = 32
MAX_BITS = 4096
"""Bits of an integer. Python writes and reads longer ones in a time that grows with the square."""
MAX_DIGITS = 1300
"""Characters of a decimal number: as many as such an integer has, and a sign and an exponent."""
MAX_ZONES = 32
"""Time zones in a value: each is read from a file."""
MAX_SAME_HASH = 16
"""Keys with the same hash. Numbers can be chosen so that all have the same one, and each is then
compared with all before it: 20,000 of them take a minute."""
MAX_SHORT = 64
"""Characters of a date, a time, a time zone or a UUID."""
MAX_SHOWN_KEY = 60
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,2}")
_NAME_OF_TYPE = type.__dict__["__name__"]
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

Made = TypeVar("Made")
Moment = TypeVar("Moment", datetime.datetime, datetime.time)
Iso = TypeVar("Iso", datetime.date, datetime.datetime, datetime.time)


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


def to_json(value: Any, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> bytes:
    """Return plain data as JSON in UTF-8.

    Raises:
        NotPlain: see `encode`.
    """
    return _JSON.encode(encode(value, items=items, text=text)).encode()


def from_json(raw: bytes, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> Any:
    """Return the value that `to_json` has written. Weigh what is hostile before.

    Raises:
        InvalidData: it is anything else.
    """
    try:
        data = frames.STRICT.decode(raw.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidData(f"it is not strict JSON: {error}") from None
    return decode(data, items=items, text=text)


def encode(value: Any, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> Any:
    """Return plain data in its JSON form: made of dict, list, str, int, float, bool and None.

    Raises:
        NotPlain: something in it is of another type, or is nested too deeply.
        TooLarge: it has more than so many items, or more than so many characters of text.
    """
    return _Writer(items, text).write(value, 0)


def decode(data: Any, *, items: int = MAX_ITEMS, text: int = MAX_TEXT) -> Any:
    """Return the value of a JSON form.

    Raises:
        InvalidData: it is not the form of any value, or of one that is too large.
    """
    return _Reader(items, text).read(data, 0)


class _Writer:
    def __init__(self, items: int, text: int) -> None:
        self._items = items
        self._room = text

    def write(self, value: Any, depth: int) -> Any:
        self._items -= 1
        if self._items < 0:
            raise TooLarge("has too many items")
        if depth > MAX_DEPTH:
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
        if value.bit_length() > MAX_BITS:
            raise NotPlain(f"is a number of more than {MAX_BITS} bits")
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
        _check_hashes(value, NotPlain)
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
        _check_hashes(value, NotPlain)
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
            if zone.key is None or not _is_zone(zone.key):
                raise NotPlain("has a time zone without a name that others know")
            more["zone"] = zone.key
            value = value.replace(tzinfo=None)
        elif type(zone) is datetime.timezone:
            name = zone.tzname(None)
            if name != datetime.timezone(zone.utcoffset(None)).tzname(None):
                more["name"] = self._text(name, 0)
        elif zone is not None:
            raise NotPlain(f"has a time zone that is a {_type_name(type(zone))}")
        return [value.isoformat(), more] if more else value.isoformat()

    def _timedelta(self, value: datetime.timedelta, depth: int) -> Any:
        return {"$timedelta": [value.days, value.seconds, value.microseconds]}

    def _decimal(self, value: decimal.Decimal, depth: int) -> Any:
        text = str(value)
        if len(text) > MAX_DIGITS:
            raise NotPlain(f"is a decimal number of more than {MAX_DIGITS} characters")
        self._take_text(len(text))
        return {"$decimal": text}

    def _complex(self, value: complex, depth: int) -> Any:
        return {"$complex": [self._float(value.real, 0), self._float(value.imag, 0)]}

    def _uuid(self, value: uuid.UUID, depth: int) -> Any:
        return {"$uuid": str(value)}


_WRITERS: dict[type, Callable[[_Writer, Any, int], Any]] = {
    type(None): lambda writer, value, depth: value,
    bool: lambda writer, value, depth: value,
    int: _Writer._number,
    float: _Writer._float,
    str: _Writer._text,
    bytes: _Writer._bytes,
    list: _Writer._list,
    tuple: _Writer._tuple,
    set: _Writer._set,
    frozenset: _Writer._frozenset,
    dict: _Writer._dict,
    datetime.date: _Writer._date,
    datetime.datetime: _Writer._datetime,
    datetime.time: _Writer._time,
    datetime.timedelta: _Writer._timedelta,
    decimal.Decimal: _Writer._decimal,
    complex: _Writer._complex,
    uuid.UUID: _Writer._uuid,
}


def _described(kind: type) -> str:
    name = _type_name(kind)
    bases = [_type_name(base) for base in kind.__mro__ if _is_plain_type(base)]
    return f"is a {name}, a kind of {bases[0]}" if bases else f"is a {name}"


def _is_plain_type(kind: type) -> bool:
    return type(kind) is type and kind in _WRITERS


def _type_name(kind: type) -> str:
    """Return the name of a type; its metaclass is not asked, which may do anything."""
    return str(_NAME_OF_TYPE.__get__(kind))


def _place_of(key: Any) -> str:
    """Return the place of an item with this key, as code would write it."""
    if type(key) is str and len(key) <= MAX_SHOWN_KEY:
        return f".{key}" if key.isidentifier() else f"[{key!r}]"
    return f"[{key}]" if type(key) is int and key.bit_length() <= MAX_SHOWN_KEY else "[…]"


def _check_hashes(keys: Collection[Any], failure: Callable[[str], ValueError]) -> None:
    if len(keys) > MAX_SAME_HASH:
        [(_, most)] = Counter(map(hash, keys)).most_common(1)
        if most > MAX_SAME_HASH:
            raise failure("has too many keys with the same hash")


class _Reader:
    """Reads JSON forms. Hostile ones end in InvalidData, after work in proportion to their size."""

    def __init__(self, items: int, text: int) -> None:
        self._items = items
        self._room = text
        self._zones: dict[str, zoneinfo.ZoneInfo] = {}

    def read(self, data: Any, depth: int) -> Any:
        self._items -= 1
        if self._items < 0:
            raise InvalidData("it has too many items")
        if depth > MAX_DEPTH:
            raise InvalidData("it is nested too deeply")
        kind = type(data)
        if kind is str:
            return self._text(data)
        if kind is int:
            return self._number(data)
        if kind is float:
            return self._finite(data)
        if kind is list:
            return [self.read(item, depth + 1) for item in data]
        if kind is dict:
            return self._object(data, depth)
        if data is None or kind is bool:
            return data
        raise InvalidData(f"JSON has no {_type_name(kind)}")

    def _number(self, data: int) -> int:
        if data.bit_length() > MAX_BITS:
            raise InvalidData(f"a number has more than {MAX_BITS} bits")
        return data

    def _finite(self, data: float) -> float:
        if not math.isfinite(data):
            raise InvalidData("a number is out of range")
        return data

    def _short(self, data: Any) -> str:
        """Return a date and the like, which does not count as text: there are so many items."""
        if type(data) is not str or len(data) > MAX_SHORT:
            raise InvalidData("a text is missing, or is too long")
        return data

    def _text(self, data: Any) -> str:
        if type(data) is not str:
            raise InvalidData("a text is missing")
        self._room -= len(data)
        if self._room < 0:
            raise InvalidData("it has too much text")
        if not data.isascii():
            try:
                data.encode()
            except UnicodeEncodeError:
                raise InvalidData("a text has half a character") from None
        return data

    def _object(self, data: dict[str, Any], depth: int) -> Any:
        made: dict[str, Any] = {}
        for key, item in data.items():
            if type(key) is not str:
                raise InvalidData("the key of an object is no text")
            if key.startswith("$"):
                return self._tagged(data, depth)
            made[self.read(key, depth)] = self.read(item, depth + 1)
        return made

    def _tagged(self, data: dict[str, Any], depth: int) -> Any:
        [*tags] = data
        reader = _READERS.get(tags[0]) if len(tags) == 1 else None
        if reader is None:
            raise InvalidData("an object with a key that begins with $ is of no known kind")
        return reader(self, data[tags[0]], depth)

    def _list(self, data: Any, depth: int) -> list[Any]:
        if type(data) is not list:
            raise InvalidData("a list is missing")
        return [self.read(item, depth + 1) for item in data]

    def _tuple(self, data: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self._list(data, depth))

    def _set(self, data: Any, depth: int) -> set[Any]:
        return set(self._keys(self._list(data, depth)))

    def _frozenset(self, data: Any, depth: int) -> frozenset[Any]:
        return frozenset(self._keys(self._list(data, depth)))

    def _keys(self, made: list[Any]) -> list[Any]:
        """Return them, if they can be the keys of a dict or the items of a set."""
        try:
            _check_hashes(made, InvalidData)
            unique = len(set(made)) == len(made)
        except (TypeError, OverflowError):
            raise InvalidData("a key is of a kind that has no hash") from None
        if not unique:
            raise InvalidData("a key appears twice")
        return made

    def _dict(self, data: Any, depth: int) -> dict[Any, Any]:
        if type(data) is not list:
            raise InvalidData("a list is missing")
        keys, items = [], []
        for pair in data:
            if type(pair) is not list or len(pair) != 2:
                raise InvalidData("a key and its value are missing")
            keys.append(self.read(pair[0], depth + 1))
            items.append(self.read(pair[1], depth + 1))
        return dict(zip(self._keys(keys), items, strict=True))

    def _float(self, data: Any, depth: int) -> float:
        if type(data) is not str or data not in _NOT_FINITE:
            raise InvalidData("a number is none of nan, inf and -inf")
        return float(data)  # an object of its own: a set may hold several that are no number

    def _complex(self, data: Any, depth: int) -> complex:
        if type(data) is not list or len(data) != 2:
            raise InvalidData("a complex number has two parts")
        return complex(*map(self._part, data))

    def _part(self, data: Any) -> float:
        if type(data) is float:
            return self._finite(data)
        if type(data) is dict and list(data) == ["$float"]:
            return self._float(data["$float"], 0)
        raise InvalidData("a part of a complex number is no float")

    def _bytes(self, data: Any, depth: int) -> bytes:
        return self._made(lambda text: base64.b64decode(text, validate=True), self._text(data))

    def _decimal(self, data: Any, depth: int) -> decimal.Decimal:
        text = self._text(data)
        if len(text) > MAX_DIGITS:
            raise InvalidData(f"a decimal number has more than {MAX_DIGITS} characters")
        try:
            made = decimal.Decimal(text)
        except decimal.InvalidOperation:
            raise InvalidData("it is not a decimal number") from None
        return self._same(made, str(made), text)

    def _uuid(self, data: Any, depth: int) -> uuid.UUID:
        text = self._short(data)
        made = self._made(uuid.UUID, text)
        return self._same(made, str(made), text)

    def _date(self, data: Any, depth: int) -> datetime.date:
        return self._iso(datetime.date, data)

    def _datetime(self, data: Any, depth: int) -> datetime.datetime:
        return self._moment(datetime.datetime, data)

    def _time(self, data: Any, depth: int) -> datetime.time:
        return self._moment(datetime.time, data)

    def _timedelta(self, data: Any, depth: int) -> datetime.timedelta:
        if type(data) is not list or [type(part) for part in data] != [int, int, int]:
            raise InvalidData("a timedelta is three integers: days, seconds, microseconds")
        made = self._made(lambda parts: datetime.timedelta(parts[0], parts[1], parts[2]), data)
        return self._same(made, [made.days, made.seconds, made.microseconds], data)

    def _moment(self, kind: type[Moment], data: Any) -> Moment:
        if type(data) is not list:
            return self._iso(kind, data)
        if len(data) != 2 or type(data[1]) is not dict:
            raise InvalidData("a time is a text, or a text and an object with what it leaves out")
        text, more = data
        made = self._iso(kind, text)
        if not more or more.keys() - {"fold", "zone", "name"} or more.get("fold", 1) != 1:
            raise InvalidData("a time has fold, zone or name beside its text, and nothing else")
        if "zone" in more:
            made = made.replace(tzinfo=self._zone(more["zone"], made))
        if "name" in more:
            made = made.replace(tzinfo=self._named(self._text(more["name"]), made))
        return made.replace(fold=1) if "fold" in more else made

    def _zone(self, data: Any, made: datetime.datetime | datetime.time) -> zoneinfo.ZoneInfo:
        name = self._short(data)
        if made.tzinfo is not None or not _is_zone(name):
            raise InvalidData("a time has an offset beside its zone, or a zone without a name")
        if name not in self._zones:
            if len(self._zones) == MAX_ZONES:
                raise InvalidData(f"it has more than {MAX_ZONES} time zones")
            try:
                self._zones[name] = zoneinfo.ZoneInfo(name)
            except (KeyError, ValueError, OSError):
                raise InvalidData(f"the time zone {name} is not known here") from None
        return self._zones[name]

    def _named(self, name: str, made: datetime.datetime | datetime.time) -> datetime.timezone:
        offset = made.utcoffset()
        if type(made.tzinfo) is not datetime.timezone or offset is None:
            raise InvalidData("the name of an offset stands without the offset")
        return datetime.timezone(offset, name)

    def _iso(self, kind: type[Iso], data: Any) -> Iso:
        text = self._short(data)
        made: Iso = self._made(kind.fromisoformat, text)
        return self._same(made, made.isoformat(), text)

    def _made(self, make: Callable[[Any], Made], data: Any) -> Made:
        try:
            return make(data)
        except (ValueError, OverflowError) as error:
            raise InvalidData(str(error)) from None

    def _same(self, made: Made, written: object, data: object) -> Made:
        """Return what was made, if it is written as it was found: each value has one form."""
        if written != data:
            raise InvalidData("it is not written as this kind of value is")
        return made


_READERS: dict[str, Callable[[_Reader, Any, int], Any]] = {
    "$float": _Reader._float,
    "$bytes": _Reader._bytes,
    "$tuple": _Reader._tuple,
    "$set": _Reader._set,
    "$frozenset": _Reader._frozenset,
    "$dict": _Reader._dict,
    "$date": _Reader._date,
    "$datetime": _Reader._datetime,
    "$time": _Reader._time,
    "$timedelta": _Reader._timedelta,
    "$decimal": _Reader._decimal,
    "$complex": _Reader._complex,
    "$uuid": _Reader._uuid,
}


def _is_zone(name: str) -> bool:
    return len(name) <= MAX_SHORT and _ZONE.fullmatch(name) is not None
