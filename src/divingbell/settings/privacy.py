"""The settings of privacy: what a model does not see, and how far the real values come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from divingbell.errors import ConfigError
from divingbell.settings import kinds
from divingbell.settings.markers import Check, Described
from divingbell.settings.patterns import Pattern, PatternText
from divingbell.settings.rules import tool_pattern

Privacy = Literal["off", "secrets", "personal"]
"""Nothing is replaced; secrets are; secrets and personal data are."""
Reader = Literal["model", "sandbox"]

MOST_OWN = 100
"""Expressions of one's own. All are looked for in one pass."""
MOST_EXPRESSION = 1000
"""Characters of an expression."""
MOST_PATTERNS = 1000
"""Patterns over fields. Each is compared with the fields of a result."""


def kinds_apart(value: Any) -> Any:
    """Return a table whose names are kinds; raise ValueError where two of them mean the same."""
    words: dict[str, str] = {}
    for word in value if isinstance(value, Mapping) else ():
        other = words.setdefault(kinds.meant(word), word)
        if other != word:
            raise ValueError(f"{other!r} and {word!r} mean the same kind: join both with |")
    return value


def few_enough(most: int) -> Check:
    """Return the check of a table that must not have more names than this."""
    return Check(f"with at most {most:,} names", lambda value: len(value) <= most)


def field_pattern(text: Any) -> str:
    """Return a pattern over `server.tool` or `server.tool.field`.

    Raises:
        ValueError: it is none.
    """
    if isinstance(text, str) and text.startswith("!"):
        raise ValueError(f"{text[:80]!r} must not begin with !: write the fields that are meant")
    return tool_pattern(text)


Expression = Annotated[
    str,
    Described("an expression in the syntax of RE2"),
    Check(f"of 1 to {MOST_EXPRESSION:,} characters", lambda text: 0 < len(text) <= MOST_EXPRESSION),
]
FieldPattern = Annotated[PatternText, field_pattern]


@dataclass(frozen=True, slots=True)
class PrivacyRules:
    """The `[privacy_rules]` table."""

    patterns: Annotated[
        Mapping[Annotated[str, kinds.meant], Expression],
        kinds_apart,
        Described("a table of expressions by kind"),
        few_enough(MOST_OWN),
    ] = field(default_factory=dict)
    """Expressions of your own by the kind of what they find, in the syntax of RE2."""
    fields: Annotated[
        Mapping[FieldPattern, Annotated[str, kinds.meant]],
        Described("a table of kinds by patterns over server.tool.field"),
        few_enough(MOST_PATTERNS),
    ] = field(default_factory=dict)
    """Fields of results whose values are of a kind: patterns over `server.tool.field`."""
    border: Annotated[
        Mapping[FieldPattern, Reader],
        Described('a table of "model" or "sandbox" by patterns over server.tool'),
        few_enough(MOST_PATTERNS),
    ] = field(default_factory=dict)
    """Who does not see the real values of a tool or field: the "model", or the "sandbox" too."""
    _borders: tuple[tuple[Pattern, Reader], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for pattern, kind in self.fields.items():
            try:
                kinds.check_known(kind, self.patterns)
            except ValueError as error:
                raise ConfigError(f"fields {pattern}: {error}") from None
        borders = tuple((Pattern(text), reader) for text, reader in self.border.items())
        object.__setattr__(self, "_borders", borders)

    def border_of(self, tool: str, field: str = "") -> Reader:
        """Return who does not see what a tool returns, by `server.tool`, in one of its fields.

        The first pattern that matches the tool or the field decides; without one the model.
        """
        names = (tool, f"{tool}.{field}") if field else (tool,)
        for pattern, reader in self._borders:
            if any(map(pattern.matches, names)):
                return reader
        return "model"
