"""Logins: the cookies of browsers in which somebody has shown a token."""

import secrets
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass

from divingbell.surfaces.auth import digest_of

LIFETIME = 12 * 3600.0
"""Seconds that a cookie is good for: a day's work."""
MOST_OF_TOKEN = 100
"""Logins with one token: whoever has it can't end those of others."""
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
        self._of_token: defaultdict[bytes, deque[bytes]] = defaultdict(deque)
        """By the hash of a token, its cookies, the oldest first."""

    def begin(self, token: str, *, over_tls: bool = False) -> str:
        """Return the value of a cookie for whoever has this token, which holds."""
        value, shown = secrets.token_urlsafe(32), digest_of(token)
        self._known[digest_of(value)] = Login(shown, self._clock() + LIFETIME, over_tls)
        alike = self._of_token[shown]
        alike.append(digest_of(value))
        if len(alike) > MOST_OF_TOKEN:
            self._forget(alike[0])
        elif len(self._known) > MOST:
            self._forget(next(iter(self._known)))
        return value

    def of(self, value: str) -> Login | None:
        """Return what is known of a cookie, if it is still good."""
        login = self._known.get(digest_of(value))
        return None if login is None or login.until < self._clock() else login

    def end(self, value: str) -> None:
        """Forget a cookie."""
        self._forget(digest_of(value))

    def _forget(self, cookie: bytes) -> None:
        login = self._known.pop(cookie, None)
        if login is None:
            return
        alike = self._of_token[login.token]
        alike.remove(cookie)
        if not alike:
            del self._of_token[login.token]
