"""The reader of plain data in its JSON form, which may come from hostile code."""

import base64
import datetime
import decimal
import math
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any, TypeVar

from divingbell_inside import value_rules as rules
from divingbell_inside.value_rules import InvalidData

_NOT_FINITE = ("nan", "inf", "-inf")

Made = TypeVar("Made")
Moment = TypeVar("Moment", datetime.datetime, datetime.time)
Iso = TypeVar("Iso", datetime.date, datetime.datetime, datetime.time)


class Reader:
    """Reads one JSON form; a hostile one ends in InvalidData, after work in proportion to it."""

    def __init__(self, items: int, text: int) -> None:
        self._items = items
        self._room = text
        self._chosen = rules.MAX_CHOSEN_IN_ALL
        self._zones: dict[str, zoneinfo.ZoneInfo] = {}

    def read(self, data: Any, depth: int) -> Any:
        self._items -= 1
        if self._items < 0:
            raise InvalidData("it has too many items")
        if depth > rules.MAX_DEPTH:
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
        raise InvalidData(f"JSON has no {rules.type_name(kind)}")

    def _number(self, data: int) -> int:
        if data.bit_length() > rules.MAX_BITS:
            raise InvalidData(f"a number has more than {rules.MAX_BITS} bits")
        return data

    def _finite(self, data: float) -> float:
        if not math.isfinite(data):
            raise InvalidData("a number is out of range")
        return data

    def _short(self, data: Any) -> str:
        """Return a date and the like, which does not count as text: there are so many items."""
        if type(data) is not str or len(data) > rules.MAX_SHORT:
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
        reader = READERS.get(tags[0]) if len(tags) == 1 else None
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
        return self._unique(self._list(data, depth))

    def _frozenset(self, data: Any, depth: int) -> frozenset[Any]:
        return frozenset(self._unique(self._list(data, depth)))

    def _unique(self, made: list[Any]) -> set[Any]:
        """Return them as a set, if they can be the keys of a dict or the items of a set."""
        try:
            self._chosen -= rules.check_hashes(made, InvalidData)
            if self._chosen < 0:
                raise InvalidData("it has too many keys that are not text")
            found = set(made)
        except (TypeError, OverflowError):
            raise InvalidData("a key is of a kind that has no hash") from None
        if len(found) < len(made):
            raise InvalidData("a key appears twice")
        return found

    def _dict(self, data: Any, depth: int) -> dict[Any, Any]:
        if type(data) is not list:
            raise InvalidData("a list is missing")
        keys, items = [], []
        for pair in data:
            if type(pair) is not list or len(pair) != 2:
                raise InvalidData("a key and its value are missing")
            keys.append(self.read(pair[0], depth + 1))
            items.append(self.read(pair[1], depth + 1))
        self._unique(keys)
        return dict(zip(keys, items, strict=True))

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
        if len(text) > rules.MAX_DIGITS:
            raise InvalidData(f"a decimal number has more than {rules.MAX_DIGITS} characters")
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
        fold = more.get("fold", 1)
        is_fold = type(fold) is int and fold == 1
        if not more or more.keys() - {"fold", "zone", "name"} or not is_fold:
            raise InvalidData("a time has fold, zone or name beside its text, and nothing else")
        if "zone" in more:
            made = made.replace(tzinfo=self._zone(more["zone"], made))
        if "name" in more:
            made = made.replace(tzinfo=self._named(self._text(more["name"]), made))
        return made.replace(fold=1) if "fold" in more else made

    def _zone(self, data: Any, made: datetime.datetime | datetime.time) -> zoneinfo.ZoneInfo:
        name = self._short(data)
        if made.tzinfo is not None or not rules.is_zone(name):
            raise InvalidData("a time has an offset beside its zone, or a zone without a name")
        if name not in self._zones:
            if len(self._zones) == rules.MAX_ZONES:
                raise InvalidData(f"it has more than {rules.MAX_ZONES} time zones")
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


READERS: dict[str, Callable[[Reader, Any, int], Any]] = {
    "$float": Reader._float,
    "$bytes": Reader._bytes,
    "$tuple": Reader._tuple,
    "$set": Reader._set,
    "$frozenset": Reader._frozenset,
    "$dict": Reader._dict,
    "$date": Reader._date,
    "$datetime": Reader._datetime,
    "$time": Reader._time,
    "$timedelta": Reader._timedelta,
    "$decimal": Reader._decimal,
    "$complex": Reader._complex,
    "$uuid": Reader._uuid,
}
