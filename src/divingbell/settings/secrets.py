"""Secrets in entries of servers, known by their looks. In doubt a value is one."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

SHORTEST = 6
"""A shorter value can't be blotted out without taking ordinary words along."""

LONGEST_WORD = 12
"""Letters of an ordinary word ("production" has ten); a longer one may be a password."""

_NAMES = re.compile(
    r"token|secret|passw|passphrase|passcode|credential|api[_-]?key|access[_-]?key|private|"
    r"auth|cookie|session|signature|bearer|jwt|dsn|connection|(?:^|[_-])(?:key|pwd|pass|pat)(?:$|[_-])|"
    r"key$|webhook",
    re.IGNORECASE,
)
_PREFIXES = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|glpat|xox[a-z]|npm|pypi|hf|lin_api|ntn|secret|shpat|"
    r"github_pat|dckr_pat|ATATT|AKIA|ASIA|AIza|eyJ|ya29)[-_.A-Za-z0-9]"
)
_LONG = re.compile(r"(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[A-Za-z0-9+/=_-]{24,}", re.IGNORECASE)
_HARMLESS_VARIABLES = re.compile(
    r"HOME|USER|LOGNAME|PWD|OLDPWD|PATH|SHELL|TERM|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|HOSTNAME|"
    r"EDITOR|XDG_\w+|NODE_ENV|(?:\w+_)?(?:DIR|FOLDER|PATH|ROOT|HOST|PORT|REGION|ZONE)"
)
_HARMLESS_HEADERS = {"accept", "accept-language", "content-type", "user-agent", "origin"}


def looks_secret(name: str, value: str) -> bool:
    """Say whether a value under this name is a secret."""
    if len(value) < SHORTEST or value.lower() in ("disabled", "enabled"):
        return False
    return bool(_NAMES.search(name) or _PREFIXES.match(value) or _LONG.fullmatch(value))


def harmless(name: str, value: str) -> bool:
    """Say whether a variable that an entry names can be shown: folders, hosts, numbers."""
    if len(value) < SHORTEST or _HARMLESS_VARIABLES.fullmatch(name.upper()):
        return True
    if looks_secret(name, value):
        return False
    if value.startswith(("/", "~/", "./")) or value.isdigit():
        return True
    if value.startswith(("http://", "https://")):
        return not in_url(value)
    # A word such as "production": blotted out everywhere, it would spoil honest results.
    return value.isalpha() and value.islower() and len(value) <= LONGEST_WORD


def in_header(name: str, value: str) -> list[str]:
    """Return the secrets of a header: the value, and the token without `Bearer`."""
    if name.lower() in _HARMLESS_HEADERS:
        return []
    return [value, *(part for part in value.split() if len(part) > len("Bearer "))]


def in_url(url: str) -> list[str]:
    """Return the password and the secret-looking query values of an address."""
    try:
        parts = urlsplit(url)
        password = parts.password
        queries = parse_qsl(parts.query)
    except ValueError:
        return []
    found = [password, unquote(password)] if password else []
    if parts.scheme in ("http", "https") and parts.username and not password:
        found.append(parts.username)
    return found + [value for name, value in queries if looks_secret(name, value)]


def in_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the secrets of a command line: `--api-key X`, `--token=X`, addresses."""
    found: list[str] = []
    before = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if equals and looks_secret(name, value):
            found.append(value)
        elif before.startswith("-") and "=" not in before and not argument.startswith("-"):
            if looks_secret(before, argument) and not argument.startswith(("/", "./")):
                found.append(argument)
        elif _PREFIXES.match(argument) and _LONG.fullmatch(argument):
            found.append(argument)
        elif match := re.match(r"[\w-]+:\s*(.+)", argument):  # --header "Authorization: Bearer X"
            header = argument.partition(":")[0]
            if _NAMES.search(header):
                found += in_header(header, match[1])
        found += in_url(argument)
        before = argument
    return found


def blotted(text: str, secrets: Iterable[str], mark: str = "*") -> str:
    """Return the text without the secrets."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, mark)
    return text
