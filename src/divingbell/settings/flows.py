"""Rules about flows: what one tool has returned may not be sent to another one."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from divingbell.settings.markers import Named
from divingbell.settings.patterns import Patterns, PatternTexts
from divingbell.settings.rules import ToolPatterns

MAX_FLOWS = 100
"""Rules about flows. A conversation keeps a line for each that it has set off."""


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

    def is_for(self, user: str) -> bool:
        """Return whether it is about the calls of this user."""
        return self._users.matches(user)
