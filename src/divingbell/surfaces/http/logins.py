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
class _Login:
    token: bytes
    """The hash of the token that was shown: whether it still holds is asked each time."""
    until: float


class Logins:
    """Remembers whose cookie is whose, by hashes. They are forgotten when this process ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[bytes, _Login] = {}

    def begin(self, token: str) -> str:
        """Return the value of a cookie for whoever has this token, which holds."""
        value = secrets.token_urlsafe(32)
        self._known[digest_of(value)] = _Login(digest_of(token), self._clock() + LIFETIME)
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return value

    def digest_of_token(self, value: str) -> bytes | None:
        """Return the hash of the token behind a cookie, if it is still good."""
        login = self._known.get(digest_of(value))
        return None if login is None or login.until < self._clock() else login.token

    def end(self, value: str) -> None:
        """Forget a cookie."""
        self._known.pop(digest_of(value), None)
