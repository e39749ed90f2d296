"""Fields: which names of results and files stand for personal data, and of which kind it is."""

from collections.abc import Container, Mapping
from typing import NamedTuple

from divingbell.border.privacy.kinds import KINDS
from divingbell.settings.patterns import Pattern
from divingbell_inside.personal_names import usual_kind

LONGEST_NAME = 200
"""Characters of a name that can be one of a field."""
LONGEST_PATH = 1000
MOST_COMPARISONS = 1_000_000
"""Comparisons with patterns for one result or file. Measured: a microsecond each."""
MOST_CACHED = 50_000


class Field(NamedTuple):
    """The kind of what a field holds."""

    kind: str
    """None, `""`, if it is known to hold nothing personal."""
    is_meant: bool
    """Whether the settings say so. A name alone does not say that each value is of its kind."""


class Fields:
    """Kinds of fields, by patterns of the settings, then by plain names.

    A pattern is compared with `server.tool.field`, where the field is the last name or all names
    that lead to it with dots between them; for a file with `files.customers.csv.field`. The first
    one that matches counts. `kinds` are those that are looked for, one's own among them; a field
    of any other kind holds nothing personal.

    Raises:
        ValueError: a pattern is longer than one may be.
    """

    def __init__(
        self, patterns: Mapping[str, str] | None = None, kinds: Container[str] = KINDS
    ) -> None:
        self._kinds = kinds
        self._patterns = [
            (Pattern(text), Field(kind if kind in kinds else "", True))
            for text, kind in (patterns or {}).items()
        ]

    def of(self, origin: str) -> "FieldsOfOrigin":
        """Return the fields of one result of a tool, `server.tool`, or of a file."""
        return FieldsOfOrigin(origin, self._patterns, self._kinds)


class FieldsOfOrigin:
    """The fields of one result or file. Remembers those it was asked about."""

    def __init__(
        self, origin: str, patterns: list[tuple[Pattern, Field]], kinds: Container[str]
    ) -> None:
        self._origin = origin
        self._patterns = patterns
        self._kinds = kinds
        self._by_name: dict[str, Field | None] = {}
        self._left = MOST_COMPARISONS

    @property
    def is_spent(self) -> bool:
        """Whether there were more comparisons with patterns than are made."""
        return self._left <= 0

    def field(self, name: str, path: str = "") -> Field | None:
        """Return what is known of a field; None if its name says nothing."""
        if len(name) > LONGEST_NAME:
            return None
        if path != name and self._patterns and len(path) <= LONGEST_PATH:
            by_path = self._meant(path)
            if by_path is not None:
                return by_path
        if name not in self._by_name:
            if len(self._by_name) >= MOST_CACHED:
                self._by_name.clear()
            self._by_name[name] = self._meant(name) or self._usual(name)
        return self._by_name[name]

    def _meant(self, name: str) -> Field | None:
        text = f"{self._origin}.{name}"
        for pattern, field in self._patterns:
            self._left -= 1
            if self._left <= 0:
                return None
            if pattern.matches(text):
                return field
        return None

    def _usual(self, name: str) -> Field | None:
        kind = usual_kind(name)
        return None if kind is None else Field(kind if kind in self._kinds else "", False)
