"""Logins: the cookies of browsers in which somebody has shown a token."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from divingbell.surfaces.auth import digest_of

LIFETIME = 12 * 3600.0
"""Seconds that a cookie is good for: a day's work."""
MOST = 10_000
"""Logins that are remembered; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Login:
    """What is known of a cookie."""

    token: bytes
    """The hash of the token that was shown: whether it still holds is asked each time."""
    until: float
    over_tls: bool = False
    """It was given to a page that came over TLS: none that did not comes with it."""


class Logins:
    """Remembers whose cookie is whose, by hashes. They are forgotten when this process ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[bytes, Login] = {}

    def begin(self, token: str, *, over_tls: bool = False) -> str:
        """Return the value of a cookie for whoever has this token, which holds."""
        value = secrets.token_urlsafe(32)
        self._known[digest_of(value)] = Login(digest_of(token), self._clock() + LIFETIME, over_tls)
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return value

    def of(self, value: str) -> Login | None:
        """Return what is known of a cookie, if it is still good."""
        login = self._known.get(digest_of(value))
        return None if login is None or login.until < self._clock() else login

    def end(self, value: str) -> None:
        """Forget a cookie."""
        self._known.pop(digest_of(value), None)
