"""Rules about flows: what one tool has returned may not be sent to another one."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from divingbell.settings import kinds
from divingbell.settings.markers import Check, Described, Named, one_or_more
from divingbell.settings.patterns import Patterns, PatternTexts
from divingbell.settings.rules import ToolPatterns

MAX_FLOWS = 100
"""Rules about flows. A conversation keeps a line for each that it has set off."""

KindWords = Annotated[
    tuple[Annotated[str, kinds.meant], ...],
    one_or_more,
    Described('a list of kinds, such as ["email", "secrets"]'),
    Check("", bool),
]


@dataclass(frozen=True, slots=True)
class Flow:
    """One `[[policy.flow]]`."""

    sources: Annotated[ToolPatterns, Named("from")]
    """Patterns over `server.tool`: those whose results must not go everywhere."""
    targets: Annotated[ToolPatterns, Named("to")]
    """Patterns over `server.tool`: those that are held back afterwards."""
    action: Literal["deny", "ask"]
    """What happens: "deny" or "ask"."""
    reason: str = ""
    """Shown to the one who is refused and to the one who is asked."""
    users: PatternTexts = ("*",)
    """Patterns over the names of users."""
    kinds: KindWords | None = None
    """Kinds of values: the rule is about those in the arguments, and not about conversations."""
    _sources: Patterns = field(init=False, repr=False, compare=False)
    _targets: Patterns = field(init=False, repr=False, compare=False)
    _users: Patterns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sources", Patterns(self.sources))
        object.__setattr__(self, "_targets", Patterns(self.targets))
        object.__setattr__(self, "_users", Patterns(self.users))

    def starts_at(self, name: str) -> bool:
        """Return whether it is about what this tool returns, by `server.tool`."""
        return self._sources.matches(name)

    def leads_to(self, name: str) -> bool:
        """Return whether it holds this tool back, by `server.tool`."""
        return self._targets.matches(name)

    def is_about(self, kind: str) -> bool:
        """Return whether values of this kind are held back; without kinds it is about none."""
        words = self.kinds or ()
        return any(kind == word or kind in kinds.GROUPS.get(word, ()) for word in words)

    @property
    def words(self) -> str:
        """The kinds as people say them: "email, personal"."""
        return ", ".join(word.lower().replace("_", " ") for word in self.kinds or ())

    def is_for(self, user: str) -> bool:
        """Return whether it is about the calls of this user."""
        return self._users.matches(user)
