"""The settings of privacy: what a model does not see, and how far the real values come."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from divingbell.errors import ConfigError
from divingbell.settings import kinds
from divingbell.settings.flows import Flow
from divingbell.settings.markers import Check, Described
from divingbell.settings.patterns import Pattern, PatternText, covers, may_share
from divingbell.settings.rules import tool_pattern

Privacy = Literal["off", "secrets", "personal"]
"""Nothing is replaced; secrets are; secrets and personal data are."""
Reader = Literal["model", "sandbox"]
Images = Literal["held", "checked"]

_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
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
AnalyzerName = Check(
    'such as "my_models:engine"', lambda text: not text or bool(_ATTRIBUTE.fullmatch(text))
)


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
    images: Images = "held"
    """What a model sees of images with "personal": none of them ("held"), or charts of matplotlib
    in whose texts nothing is found ("checked")."""
    analyzer: Annotated[str, AnalyzerName] = ""
    """An AnalyzerEngine of Presidio for names and places, `module:attribute`, with "personal"."""
    users: tuple[str, ...] = ()
    """Users that have "personal", whatever `privacy` says: the names of their tokens."""
    _borders: tuple[tuple[Pattern, Reader], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for pattern, kind in self.fields.items():
            try:
                kinds.check_known(kind, self.patterns)
            except ValueError as error:
                raise ConfigError(f"fields {pattern}: {error}") from None
        borders = tuple((Pattern(text), reader) for text, reader in self.border.items())
        object.__setattr__(self, "_borders", borders)

    def word_for(self, user: str, usual: Privacy | None) -> Privacy:
        """Return the word of `privacy` that counts for a user, where others have the usual one."""
        return "personal" if user in self.users else usual or "off"

    def border_of(self, tool: str, field: str = "") -> Reader:
        """Return who does not see what a tool returns, by `server.tool`, in one of its fields.

        The first pattern that matches the tool or the field decides; without one the model.
        """
        names = (tool, f"{tool}.{field}") if field else (tool,)
        for pattern, reader in self._borders:
            if any(map(pattern.matches, names)):
                return reader
        return "model"

    def borders_in(self, tool: str) -> tuple["BorderLine", ...]:
        """Return the lines of `border` that may be about a tool or its fields, in their order."""
        return tuple(
            BorderLine(pattern, reader, pattern.matches(tool))
            for text, (pattern, reader) in zip(self.border, self._borders, strict=True)
            if pattern.matches(tool) or may_share(text, f"{tool}.*")
        )

    def check_flow(self, flow: Flow) -> None:
        """Check that a rule about kinds of values can hold, whatever code does.

        Code that has a real value can change it until nobody knows it again. So all that the
        sources return must be behind the sandbox's border.

        Raises:
            ValueError: it can't, or there is no such kind. Says what to write.
        """
        for word in flow.kinds or ():
            if word not in kinds.GROUPS:
                kinds.check_known(word, {**self.patterns, **_MORE_KINDS})
        for source in _wanted(flow.sources):
            line = self._first_open_line(source, flow)
            if line != _SEALED:
                raise ValueError(_not_sealed(source, line))

    def _first_open_line(self, source: str, flow: Flow) -> str:
        """The line by which code gets values of a source; "" where none seals all of it."""
        for text, reader in self.border.items():
            if reader == "sandbox" and covers(text, source):
                return _SEALED
            if reader == "model" and _is_about(text, source) and not _is_left_out(text, flow):
                return text
        return ""


def check_flows(privacy: Privacy, flows: Sequence[Flow]) -> None:
    """Check that all kinds of values are looked for that there are rules about.

    Raises:
        ConfigError: one is not, and its rule would never hold.
    """
    for number, flow in enumerate(flows, 1):
        if not flow.kinds or privacy == "personal":
            continue
        if privacy == "off" or any(map(flow.is_about, kinds.PERSONAL)):
            least = "personal" if any(map(flow.is_about, kinds.PERSONAL)) else "secrets"
            raise ConfigError(
                f"[policy.flow], flow {number} is about {flow.words}, and with "
                f'privacy = "{privacy}" nobody looks for that: write privacy = "{least}"'
            )


class BorderLine(NamedTuple):
    """A line of `border` that may be about a tool."""

    pattern: Pattern
    reader: Reader
    is_whole: bool
    """Whether it is about the whole tool, and not about some of its fields."""


_SEALED = "sealed"
_MORE_KINDS = {**dict.fromkeys(kinds.GROUPS), kinds.VALUE: None}


def _wanted(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text in patterns if not text.startswith("!")) or ("*",)


def _is_about(text: str, source: str) -> bool:
    """Whether a line may be about a tool that a source means, or about its fields."""
    return may_share(text, source) or may_share(text, f"{source}.*")


def _is_left_out(text: str, flow: Flow) -> bool:
    """Whether the sources leave out all that a line is about."""
    unwanted = [each[1:] for each in flow.sources if each.startswith("!")]
    return any(covers(each, text) or covers(f"{each}.*", text) for each in unwanted)


def _not_sealed(source: str, line: str) -> str:
    because = (
        f'the line "{line}" = "model" of [privacy_rules.border] gives code real values of it'
        if line
        else "code gets its real values"
    )
    return (
        f'a rule with kinds holds only where code has tokens, and of "{source}" {because}: write '
        f'"{source}" = "sandbox" first in [privacy_rules.border], or take `kinds` out, so that the '
        "rule looks at the whole conversation"
    )
