"""The visitor: who comes with a request, how that was told, and what they may do."""

from dataclasses import dataclass
from typing import Literal

from starlette.types import Scope

from divingbell.host.login import login_name
from divingbell.principal import Principal
from divingbell.surfaces.auth import SCOPES, Grant, ScopeWord
from divingbell.surfaces.http.problems import Refused

KEY = "divingbell.visitor"
"""Where the guard puts the visitor into the scope of a request."""
AGAIN = "divingbell.visitor_again"
"""Where the guard puts what says who comes with the same token later on; None for nobody."""
By = Literal["token", "cookie", "tls_cookie", "open"]
"""A header, the cookie of the console, one that was given over TLS, or nothing at all where
everybody is let in."""


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


def check(scope: Scope, need: ScopeWord) -> None:
    """See to it that whoever sends a request may do what takes a scope. Every route that is not
    open to all begins with this.

    Raises:
        Refused: they may not.
    """
    visiting: Visitor = scope[KEY]
    if not visiting.may(need):
        words = f"this takes the scope `{need}`, which your token does not have: ask for another"
        raise Refused(403, "forbidden", words)


def holds(scope: Scope) -> bool:
    """Whether the token of a request that takes long still lets its visitor in: it may have expired
    or been revoked since."""
    return AGAIN not in scope or scope[AGAIN]() is not None


EVERYBODY = Visitor(login_name(), frozenset(SCOPES), "open")
"""Whoever comes where no token is asked for: they are taken for the one who runs the server."""
