"""Markers in the annotations of settings: what is special about a value, besides its type.

    max_result: Annotated[int, parse_size, at_least(1)] = 16 * MB

- a function is given the raw value, and what it returns is read in its place;
- `Check`: must hold for the value that was read;
- `Described`: says in messages what the value must be;
- `IsPath`: makes a path absolute;
- `ReadBy`: reads the value in place of all this;
- `Named`: has a name in tables that no field can have;
- `NOT_READ`: it is no setting, whoever makes the object gives it.

A function says by a ValueError or a ConfigError that it can't use a value. The reader (`tables`)
adds where that stands.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any


@dataclass(frozen=True, slots=True)
class Described:
    """A marker: what a value must be, in words that follow "must be"."""

    words: str


@dataclass(frozen=True, slots=True)
class Check:
    """A marker: what must hold for a value, and the words for it ("1 or more")."""

    words: str
    holds: Callable[[Any], object]


def at_least(number: float, words: str = "") -> Check:
    """Return the check of a number that must not be smaller."""
    return Check(words or f"{number:g} or more", lambda value: value >= number)


def more_than(number: float) -> Check:
    """Return the check of a number that must be larger."""
    return Check(f"more than {number:g}", lambda value: value > number)


@dataclass(frozen=True, slots=True)
class IsPath:
    """A marker: the text is a path, relative to the folder of the place; `~` is the home folder."""

    besides: tuple[str, ...] = ("",)
    """Texts that are no path, and stay as they are."""

    def absolute(self, text: str, folder: Path) -> str:
        """Return the path from the root on.

        Raises:
            ValueError: there is no such home directory, or the current folder is gone.
        """
        if text in self.besides:
            return text
        if "\0" in text:
            raise ValueError("a path has no zero byte in it")
        try:
            return str((folder / Path(text).expanduser()).absolute())
        except RuntimeError:
            raise ValueError("there is no such home directory: write the path from / on") from None
        except OSError:
            raise ValueError(
                "the current folder is gone, which it is relative to: write the path from / on"
            ) from None


@dataclass(frozen=True, slots=True)
class ReadBy:
    """A marker: this function reads the raw value. It is given the `Place` of the table, too."""

    function: Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Named:
    """A marker: the name that the setting has in tables, where it is a word of Python's own."""

    name: str


NOT_READ = object()
"""A marker: no table can set this."""

FilePath = Annotated[str, IsPath(), Described("a path")]
Seconds = Annotated[
    float,
    Described("a number of seconds"),
    # More than that does not fit into what the kernel's clocks count in.
    Check("more than 0 and less than 1,000,000,000", lambda value: 0 < value < 1e9),
]


def one_or_more(value: Any) -> Any:
    """Return a list for a single text: `tools = "github.*"` is a list of one."""
    return (value,) if isinstance(value, str) else value


def at_most(number: int) -> Callable[[Any], Any]:
    """Return a function that refuses longer lists, before any of their items is read."""

    def few_enough(value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) > number:
            raise ValueError(f"there are {len(value):,}, and {number:,} are the most")
        return value

    return few_enough
