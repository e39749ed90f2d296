"""The visitor: who comes with a request, how that was told, and what they may do."""

from dataclasses import dataclass
from typing import Literal

from divingbell.host.login import login_name
from divingbell.principal import Principal
from divingbell.surfaces.auth import SCOPES, Grant, ScopeWord

KEY = "divingbell.visitor"
"""Where the guard puts the visitor into the scope of a request."""
By = Literal["token", "cookie", "open"]
"""A header, the cookie of the console, or nothing at all where everybody is let in."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """One who was let in."""

    user: str
    scopes: frozenset[ScopeWord]
    by: By = "token"

    @classmethod
    def of(cls, grant: Grant, by: By = "token") -> "Visitor":
        """Return the visitor that a token is of."""
        return cls(grant.user, grant.scopes, by)

    def may(self, word: ScopeWord) -> bool:
        """Whether something that takes this scope may be done. `run` includes `read`."""
        return word in self.scopes or (word == "read" and "run" in self.scopes)

    def principal(self, conversation: str = "") -> Principal:
        """Return on whose behalf things are done. Without connections all of a user's is one."""
        return Principal(self.user, conversation, "http")


EVERYBODY = Visitor(login_name(), frozenset(SCOPES), "open")
"""Whoever comes where no token is asked for: they are taken for the one who runs the server."""
