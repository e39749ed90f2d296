"""The reader of tables: a mapping becomes a frozen dataclass, as its annotations say.

A setting is a field of the dataclass. What a value must be stands in the annotation: `int`,
`float`, `str`, `bool`, a `Literal`, `tuple[X, ...]`, `Mapping[str, X]`, `Any`, another dataclass
(a table within the table), or one of them `| None`. What is special about it is a marker
(`typing.Annotated`): see `markers`. So a new table is a new dataclass, and one field in `Settings`.
A dataclass can have a `GONE`: names that were settings once, and what to do instead.

Whatever is wrong is a ConfigError that names the place, the setting, and what may stand there.
"""

import dataclasses
import math
import reprlib
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from divingbell.errors import ConfigError
from divingbell.settings.markers import NOT_READ, Check, Described, IsPath, Named, ReadBy

MAX_NAME = 64
"""Characters of a name that others are compared with: no setting has a longer one."""
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a table: named in messages, and needed for what is relative to it."""

    source: str
    """The file that it is in, "the environment", or "the arguments"."""
    table: str = ""
    """Its name in there, such as `policy.bound`; none for what stands at the top."""
    folder: Path = Path()
    """Relative paths start from here."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that `${NAME}` stands for."""
    are_texts: bool = False
    """Numbers and lists are written as text, as in variables of the environment."""
    hides_values: bool = False
    """Messages show no value: it may be a secret."""

    def __str__(self) -> str:
        return f"{self.source}, [{self.table}]" if self.table else self.source

    def inner(self, name: str) -> "Place":
        """Return the place of a table within this one."""
        return dataclasses.replace(self, table=f"{self.table}.{name}" if self.table else name)

    def part(self, words: str) -> "Place":
        """Return the place of a part that has no name in the file, such as "rule 3"."""
        return dataclasses.replace(self, source=f"{self}, {words}", table="")

    def told(self, words: str) -> str:
        """Return a message about this place."""
        return f"{self}: {words}" if self.source else words


def read(kind: type[_Kind], raw: Any, place: Place) -> _Kind:
    """Return the object that a table describes. One that is made already is taken as it is.

    Raises:
        ConfigError: a name or a value can't be used.
    """
    return raw if isinstance(raw, kind) else build(kind, values(kind, raw, place), place)


def build(kind: type[_Kind], given: Mapping[str, Any], place: Place) -> _Kind:
    """Return the object with these values, and defaults for the others.

    Raises:
        ConfigError: one is missing, or the object refuses them.
    """
    for name, setting in _settings(kind).items():
        if setting.is_required and setting.attribute not in given:
            raise ConfigError(f"{place} has no {name!r}")
    try:
        return kind(**given)
    except ConfigError as error:
        raise ConfigError(place.told(str(error))) from None


def values(
    kind: type[Any], raw: Any, place: Place, *, apart: Collection[str] = ()
) -> dict[str, Any]:
    """Return the values that a table gives, each as its annotation says; None is as good as none.

    Names that stand `apart` are allowed, and left to the caller.

    Raises:
        ConfigError: a name or a value can't be used.
    """
    check_names(kind, raw, place, apart=apart)
    known = _settings(kind)
    return {
        known[name].attribute: _read_setting(known[name].annotation, value, name, place)
        for name, value in raw.items()
        if value is not None and name not in apart
    }


def check_names(kind: type[Any], raw: Any, place: Place, *, apart: Collection[str] = ()) -> None:
    """Raise ConfigError if it is no table, or has a name that is no setting."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{place} must be a table")
    known = dict.fromkeys([*names(kind, as_text=place.are_texts), *apart])
    for name in raw:
        if name not in known:
            advice = getattr(kind, "GONE", {}).get(name)
            hint = f" any more: {advice}" if advice else _hint(name, list(known))
            raise ConfigError(place.told(f"there is no setting {shown(name)}{hint}"))


def names(kind: type[Any], *, as_text: bool = False) -> list[str]:
    """Return the names of the settings; `as_text`: of those that a text can stand for."""
    return [
        name
        for name, setting in _settings(kind).items()
        if not as_text or _is_plain(setting.annotation)
    ]


def check(made: Any) -> None:
    """Check the values of an object that was not read: its program may have set anything.

    Raises:
        ConfigError: one is not what its annotation says.
    """
    nowhere = Place("")
    for name, setting in _settings(type(made)).items():
        if _shape(setting.annotation).reader is None:
            value = getattr(made, setting.attribute)
            _read_setting(setting.annotation, value, name, nowhere)


def shown(value: Any) -> str:
    """Return a value as a message shows it: in short."""
    try:
        return _SHORT.repr(value)
    except Exception:  # a number of thousands of digits, an object with a broken __repr__
        return "a number this long" if isinstance(value, int) else f"this {type(value).__name__}"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 120


def _hint(name: Any, known: list[str]) -> str:
    import difflib  # only mistakes need it

    close = difflib.get_close_matches(name, known, 1) if _is_short(name) else []
    return f"; did you mean {close[0]!r}?" if close else f": there are {', '.join(known)}"


def _is_short(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME and name.isprintable()


@dataclass(frozen=True, slots=True)
class _Setting:
    """A field that tables can set."""

    annotation: Any
    is_required: bool
    attribute: str
    """The name of the field, which is another one where there is a `Named`."""


def _settings(kind: Any) -> dict[str, _Setting]:
    """The settings of a dataclass by their names, in its order."""
    return _found_settings(kind)


@cache
def _found_settings(kind: Any) -> dict[str, _Setting]:
    hints = get_type_hints(kind, include_extras=True)
    missing = dataclasses.MISSING
    return {
        _name_of(item.name, hints[item.name]): _Setting(
            hints[item.name],
            item.default is missing and item.default_factory is missing,
            item.name,
        )
        for item in dataclasses.fields(kind)
        if item.init and NOT_READ not in get_args(hints[item.name])
    }


def _name_of(attribute: str, annotation: Any) -> str:
    named = (each.name for each in get_args(annotation) if isinstance(each, Named))
    return next(named, attribute)


@dataclass(frozen=True, slots=True)
class _Shape:
    """An annotation, taken apart."""

    base: Any
    functions: tuple[Callable[[Any], Any], ...] = ()
    checks: tuple[Check, ...] = ()
    words: str = ""
    path: IsPath | None = None
    reader: ReadBy | None = None


@cache
def _shape(annotation: Any) -> _Shape:
    if get_origin(annotation) is not Annotated:
        return _Shape(annotation)
    base, *markers = get_args(annotation)
    kinds = (Described, Check, IsPath, ReadBy)
    described = [each.words for each in markers if isinstance(each, Described)]
    return _Shape(
        base,
        tuple(each for each in markers if callable(each) and not isinstance(each, kinds)),
        tuple(each for each in markers if isinstance(each, Check)),
        described[-1] if described else "",
        next((each for each in markers if isinstance(each, IsPath)), None),
        next((each for each in markers if isinstance(each, ReadBy)), None),
    )


class _Unfit(Exception):
    """A value is not what its annotation says. The message is made where its name is known."""


def _read_setting(annotation: Any, value: Any, name: str, place: Place) -> Any:
    try:
        given = _from_text(annotation, value) if place.are_texts else value
        return _read(annotation, given, name, place)
    except _Unfit:
        instead = "" if place.hides_values else f", not {shown(value)}"
        words = f"{name} must be {_words(annotation)}{instead}"
        raise ConfigError(place.told(words)) from None


def _read(annotation: Any, value: Any, name: str, place: Place) -> Any:
    shape = _shape(annotation)
    if shape.reader is not None:
        return shape.reader.function(value, place)
    for function in shape.functions:
        value = _applied(function, value, name, place)
    if shape.path is not None and isinstance(value, Path):
        value = str(value)
    value = _read_base(shape.base, value, name, place)
    if (path := shape.path) is not None:
        value = _applied(lambda text: path.absolute(text, place.folder), value, name, place)
    if not all(each.holds(value) for each in shape.checks):
        raise _Unfit
    return value


def _applied(function: Callable[[Any], Any], value: Any, name: str, place: Place) -> Any:
    try:
        return function(value)
    except (ConfigError, ValueError) as error:
        raise ConfigError(place.told(f"{name}: {error}")) from None


def _read_base(base: Any, value: Any, name: str, place: Place) -> Any:
    if isinstance(base, type) and dataclasses.is_dataclass(base):
        return read(base, value, place.inner(name))
    origin, inner = get_origin(base), get_args(base)
    if origin is tuple:
        return _read_list(inner[0], value, name, place)
    if origin is Mapping:
        return _read_mapping(inner, value, name, place)
    if origin in _UNIONS:
        return None if value is None else _read(_present(base), value, name, place)
    fits = (isinstance(value, str) and value in inner) if origin is Literal else _is(base, value)
    if not fits:
        raise _Unfit
    return float(value) if base is float else value


def _read_list(kind: Any, value: Any, name: str, place: Place) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _Unfit
    if not isinstance(kind, type) or not dataclasses.is_dataclass(kind):
        return tuple(_read(kind, item, name, place) for item in value)
    word, place = kind.__name__.lower(), place.inner(name)
    return tuple(
        read(kind, item, place.part(f"{word} {number}")) for number, item in enumerate(value, 1)
    )


def _read_mapping(kinds: tuple[Any, ...], value: Any, name: str, place: Place) -> dict[Any, Any]:
    key_kind, kind = kinds
    if not isinstance(value, Mapping):
        raise _Unfit
    return {
        _read_setting(key_kind, key, f"each name in {name}", place): _read_setting(
            kind, item, f"{name} {key}" if _is_short(key) else name, place
        )
        for key, item in value.items()
    }


def _is(kind: Any, value: Any) -> bool:
    """Whether a value is of a plain kind. True and false are no numbers."""
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and _fits_float(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return kind is Any or isinstance(value, kind)


def _fits_float(value: float) -> bool:
    try:
        return not math.isnan(value)
    except OverflowError:  # a whole number of hundreds of digits
        return False


_UNIONS = (Union, types.UnionType)
_FROM_TEXT: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: {"true": True, "false": False}.__getitem__,
    tuple: lambda text: text.replace(",", " ").split(),
    Mapping: lambda text: dict(pair.split("=", 1) for pair in text.split(",") if pair),
}


def _from_text(annotation: Any, value: Any) -> Any:
    """The value that a text stands for; the text itself if it stands for none of that kind."""
    base = _present(_shape(annotation).base)
    try:
        return _FROM_TEXT.get(get_origin(base) or base, str)(value)
    except (ValueError, KeyError):
        return value


def _present(base: Any) -> Any:
    """The kind of an optional value."""
    if get_origin(base) not in _UNIONS:
        return base
    [kind] = (each for each in get_args(base) if each is not types.NoneType)
    return kind


def _is_plain(annotation: Any) -> bool:
    """Whether a text can stand for it: not for tables and lists of them."""
    base = _shape(annotation).base
    if get_origin(base) is Literal or base in (int, float, str, bool):
        return True
    inner = [each for each in get_args(base) if each not in (..., types.NoneType)]
    return bool(inner) and all(map(_is_plain, inner))


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_PLURALS = {int: "whole numbers", float: "numbers", str: "texts"}


def _words(annotation: Any) -> str:
    """The words for a value of this kind, as they follow "must be"."""
    shape = _shape(annotation)
    checks = (each.words for each in shape.checks if each.words)
    return ", ".join([shape.words or _words_of_base(shape.base), *checks])


def _words_of_base(base: Any) -> str:
    origin, inner = get_origin(base), get_args(base)
    if origin in _UNIONS:
        return _words(_present(base))
    if origin is Literal:
        return " or ".join(f'"{word}"' for word in inner)
    if origin is tuple:
        return f"a list of {_PLURALS.get(_shape(inner[0]).base, 'tables')}"
    if origin is Mapping:
        return f"a table of {_PLURALS.get(_shape(inner[1]).base, 'tables')}"
    return _WORDS.get(base, "something else")
