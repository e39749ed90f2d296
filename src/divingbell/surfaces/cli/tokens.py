"""`divingbell token`: tokens for those who come over HTTP, made, listed and revoked."""

import json
import time
from datetime import UTC, datetime

from divingbell import text
from divingbell.errors import ConfigError
from divingbell.escapes import one_line
from divingbell.host.places import data_folder
from divingbell.surfaces.auth import PRIVATE, USUAL, ScopeWord
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.notes import tell
from divingbell.surfaces.token_store import FILE_NAME, KeptToken, TokenStore

DAY = 86_400.0
MOST_DAYS = 36_500.0
MAX_NOTE = 200


def store() -> TokenStore:
    """Return the store of this user's servers."""
    return TokenStore(data_folder() / FILE_NAME)


def create(user: str, scopes: tuple[ScopeWord, ...], days: float | None, note: str) -> int:
    """Make a token and print it, alone on stdout.

    Raises:
        ConfigError: it can't be made.
    """
    if days is not None and not 0 < days <= MOST_DAYS:
        raise ConfigError(f"--days is more than 0 and at most {MOST_DAYS:,.0f}, not {days:g}")
    seconds = None if days is None else days * DAY
    given = frozenset(scopes)
    if not given - {PRIVATE}:
        given |= USUAL  # by itself it allows nothing
    token, made = store().create(user, given, seconds, text.one_line(note, MAX_NOTE))
    tell(f"{_line(made)}. It is shown this once:")
    if PRIVATE in given:
        tell(f"A server that runs has to be started again before it lets this token of {user} in.")
    print(token)
    return exit_status.OK


def show(*, as_json: bool) -> int:
    """Print the tokens, but for what they are.

    Raises:
        ConfigError: they can't be read.
    """
    found = store().kept()
    if as_json:
        print(json.dumps([_told(each) for each in found], indent=2))
        return exit_status.OK
    for each in found:
        print(_line(each))
    if not found:
        tell("There are none. `divingbell token create NAME` makes one.")
    return exit_status.OK


def revoke(identifier: str) -> int:
    """Remove a token.

    Raises:
        ConfigError: there is none of that id.
    """
    gone = store().revoke(identifier)
    tell(f"The token {gone.id} of {gone.user} lets nobody in any more.")
    return exit_status.OK


def _line(token: KeptToken) -> str:
    if token.expires is None:
        ends = "does not expire"
    else:
        word = "expired" if token.has_expired(time.time()) else "expires"
        ends = f"{word} {_moment(token.expires)}"
    note = f"  {one_line(token.note)}" if token.note else ""
    return f"{token.id}  {token.user}  {','.join(token.scopes)}  {ends}{note}"


def _told(token: KeptToken) -> dict[str, object]:
    return {
        "id": token.id,
        "user": token.user,
        "scopes": list(token.scopes),
        "created_at": _moment(token.created),
        "expires_at": None if token.expires is None else _moment(token.expires),
        "note": token.note,
    }


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
