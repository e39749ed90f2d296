"""Entries of upstream servers: a `[servers.NAME]` table, or an entry of a client's mcp.json."""

import difflib
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from divingbell.errors import ConfigError
from divingbell.settings import addresses, secrets, variables
from divingbell.settings.jsonc import read_document

log = logging.getLogger(__name__)

Transport = Literal["stdio", "http", "sse"]

START_TIMEOUT = 30.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio", "http": "http", "streamablehttp": "http", "sse": "sse",
}  # fmt: skip
_KEYS = (
    "command", "args", "env", "cwd", "url", "headers", "transport", "timeout", "start_timeout",
    "per_session", "direct", "enabled", "oauth",
)  # fmt: skip
_OTHER_NAMES = {"serverUrl": "url", "httpUrl": "url", "type": "transport", "disabled": "disabled"}


@dataclass(frozen=True, slots=True)
class OAuth:
    """How to sign in at a server that asks for it. All of it can be left out."""

    scopes: tuple[str, ...] = ()
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    port: int = 0
    """The port of this machine that the browser is sent back to; 0 for any that is free."""
    issuer: str | None = None
    """The authorization server. Without it the server itself says which one it is."""

    def __post_init__(self) -> None:
        if self.issuer is None:
            if self.client_id is not None or self.client_secret is not None:
                raise ConfigError(
                    "oauth with client_id or client_secret needs issuer too, the authorization "
                    "server that they are for, such as https://auth.example.com: "
                    "else the server could have them sent anywhere"
                )
        elif not addresses.is_issuer(self.issuer):
            raise ConfigError("issuer must be an address such as https://auth.example.com")


@dataclass(frozen=True, slots=True, repr=False)
class Server:
    """One upstream server: how to reach it and how to treat it."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    transport: Transport = "stdio"
    timeout: float | None = None
    """Seconds a call may take; None for the gateway's own limit."""
    start_timeout: float = START_TIMEOUT
    per_session: bool = False
    """A connection for each session, for servers that keep state."""
    direct: tuple[str, ...] = ()
    """Tools passed through in hybrid mode; `*` is all."""
    enabled: bool = True
    oauth: OAuth | None = None
    """None: never sign in."""
    expanded: tuple[str, ...] = ()
    """Values that came from the environment."""

    def __post_init__(self) -> None:
        check_name(self.name)

    @property
    def address(self) -> str:
        """Where it is, in words that hold no secret."""
        if self.url is None:
            return f"command {self.command}"
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, _host(parts.netloc), parts.path, "", ""))

    @property
    def identity(self) -> str:
        """A text that stays the same as long as it is the same server; holds no secret."""
        own = secrets_of(self)
        shown = [secrets.blotted(item, own) for item in (self.command or "", *self.args)]
        parts = [self.transport, *shown, self.cwd or "", *sorted(self.env), self.address]
        return json.dumps(parts)

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.address})"


@dataclass(frozen=True, slots=True)
class UnusableServer:
    """An entry that can't be used, and why. The others can."""

    name: str
    reason: str


Entry = Server | UnusableServer


def check_name(name: str) -> None:
    """Raise ConfigError if a server can't have this name."""
    # `server__tool` must have one meaning, and `a___b` would have two with a server `a_`.
    if not _NAME.fullmatch(name) or "__" in name or name.endswith("_"):
        raise ConfigError(
            f"{name[:80]!r} can't be the name of a server: it takes up to 64 letters, digits, "
            "`-` and `_`, begins with a letter or digit, does not end with `_` and has no `__`"
        )


def from_mapping(
    name: str,
    raw: Any,
    environment: Mapping[str, str],
    where: str,
    *,
    strict: bool = True,
    folder: Path | None = None,
) -> Server:
    """Make an entry from what a file says; `strict` is for files of our own.

    Raises:
        ConfigError: it can't be used; the message names the server, never a value.
    """
    at = f"{where}, server {name!r}"
    try:
        check_name(name)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{at}: it must be a table with `command` or `url`")
    values = _known(raw, at, strict)
    used: dict[str, str] = {}
    values = variables.expanded(values, environment, at, used)
    url, command = _text(values, "url", at), _text(values, "command", at)
    if (url is None) == (command is None):
        raise ConfigError(f"{at}: it needs either `command` or `url`")
    if url is not None:
        _check_url(url, at)
    headers = _texts_by_name(values, "headers", at)
    args, cwd = [*_texts(values, "args", at)], _text(values, "cwd", at)
    if folder is not None and cwd is not None:
        cwd = str(folder / Path(cwd).expanduser())
    elif folder is not None and command is not None:
        command, *args = located([command, *args], folder)
    transport = _transport(values, url, at)
    return Server(
        name=name,
        command=command,
        args=tuple(args),
        env=_texts_by_name(values, "env", at),
        cwd=cwd,
        url=url,
        headers=headers,
        transport=transport,
        timeout=_seconds(values, "timeout", at, strict),
        start_timeout=_seconds(values, "start_timeout", at, strict) or START_TIMEOUT,
        per_session=_flag(values, "per_session", at, False),
        direct=_texts(values, "direct", at),
        enabled=_flag(values, "enabled", at, not _flag(values, "disabled", at, False)),
        oauth=_oauth(values, headers, transport, at),
        expanded=tuple(value for key, value in used.items() if not secrets.harmless(key, value)),
    )


def read_entries(
    table: Any,
    environment: Mapping[str, str],
    where: str,
    *,
    strict: bool = True,
    folder: Path | None = None,
) -> list[Entry]:
    """Return the entries of a table of servers; those that can't be used are UnusableServer.

    Raises:
        ConfigError: `strict`, and something is misspelt.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: the servers must be a table, name by name")
    found: dict[str, Entry] = {}
    for given, raw in table.items():
        name = given if strict else tidy_name(given)
        if name != given:
            log.info("%s: the server %r is called %r here", where, given[:80], name)
        if name in found:
            log.warning("%s: there are two servers with the name %r", where, name)
            continue
        try:
            found[name] = from_mapping(name, raw, environment, where, strict=strict, folder=folder)
        except variables.Unusable as error:
            found[name] = UnusableServer(name, str(error))
        except ConfigError as error:
            if strict:
                raise
            found[name] = UnusableServer(name, str(error))
    return list(found.values())


def read_mcp_json(path: str | Path, environment: Mapping[str, str]) -> list[Entry]:
    """Return the servers of a standard mcp.json, or of VS Code's.

    Raises:
        ConfigError: the file can't be read, or holds no list of servers.
    """
    return listed(read_document(Path(path)), Path(path), environment)


def listed(document: Any, path: Path, environment: Mapping[str, str]) -> list[Entry]:
    """Return the servers of an mcp.json that was read already; `path` says where it lies.

    Raises:
        ConfigError: it holds no list of servers.
    """
    table = servers_in(document)
    if table is None:
        raise ConfigError(f"{path}: there is no `mcpServers` in it")
    return read_entries(table, environment, str(path), strict=False, folder=path.absolute().parent)


def servers_in(document: Any) -> Any:
    """Return the table of servers of a client's file, or None if it has none."""
    if not isinstance(document, Mapping):
        return None
    return document.get("mcpServers", document.get("servers"))


def secrets_of(server: Server) -> list[str]:
    """Return the values that must not be seen anywhere: not in output, errors or logs."""
    found = list(server.expanded)
    for name, value in server.env.items():
        if secrets.looks_secret(name, value):
            found.append(value)
        found += secrets.in_url(value)
    for name, value in server.headers.items():
        found += secrets.in_header(name, value)
    found += secrets.in_arguments(server.args)
    found += secrets.in_url(server.url or "")
    if server.oauth is not None and server.oauth.client_secret:
        found.append(server.oauth.client_secret)
    return [item for item in dict.fromkeys(found) if len(item) >= secrets.SHORTEST]


def located(words: Sequence[str], folder: Path) -> list[str]:
    """Return a command and its arguments with the paths that mean this folder made absolute.

    They are a command with a slash in it, and arguments that begin with `./` or `../`. No other
    word is touched: `time` and `@scope/time` are packages, whatever lies there under that name.
    """
    command, *arguments = words
    is_path = "/" in command and not command.startswith("${")  # that is filled in later
    program = str(folder.absolute() / command) if is_path else command
    return [program, *(_located(word, folder) for word in arguments)]


def _located(word: str, folder: Path) -> str:
    option, equals, path = word.partition("=") if word.startswith("-") else ("", "", word)
    if path in (".", "..") or path.startswith(("./", "../")):
        return f"{option}{equals}{os.path.normpath(folder.absolute() / path)}"
    return word


def tidy_name(name: str) -> str:
    """Return a name that a server can have, as near as can be to the one that it has elsewhere."""
    tidy = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]+", "-", str(name)))
    return tidy.strip("-_")[:64] or "server"


def _known(raw: Mapping[str, Any], at: str, strict: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in raw.items():
        name = key if strict else _OTHER_NAMES.get(key, key)
        if name in _KEYS or (name == "disabled" and not strict):
            if value is not None:
                found[name] = value
        elif strict:
            close = difflib.get_close_matches(key, _KEYS, 1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ConfigError(f"{at}: there is no setting {key!r}{hint}")
        else:
            log.info("%s: %r is not used here", at, key[:80])
    return found


def _transport(values: Mapping[str, Any], url: str | None, at: str) -> Transport:
    given = _text(values, "transport", at)
    if given is None:
        if url is None:
            return "stdio"
        return "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http"
    found = _TRANSPORTS.get(given.lower().replace("-", "").replace("_", ""))
    if found is None:
        raise ConfigError(f"{at}: transport can be stdio, http or sse")
    if (found == "stdio") != (url is None):
        raise ConfigError(f"{at}: stdio goes with `command`, http and sse go with `url`")
    return found


def _oauth(
    values: Mapping[str, Any], headers: Mapping[str, str], transport: Transport, at: str
) -> OAuth | None:
    given = values.get("oauth")
    if given is False or transport == "stdio":
        return None
    if given is None:
        # A server that has its token already is not asked for another one.
        known = any(name.lower() == "authorization" for name in headers)
        return None if known else OAuth()
    if given is True:
        return OAuth()
    if not isinstance(given, Mapping):
        raise ConfigError(f"{at}: oauth must be true, false or a table")
    if set(given) - {field.name for field in fields(OAuth)}:
        names = "scopes, client_id, client_secret, port and issuer"
        raise ConfigError(f"{at}: oauth has {names}, no others")
    port = given.get("port", 0)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise ConfigError(f"{at}: the port of oauth must be a number below 65536")
    texts = {key: _text(given, key, at) for key in ("client_id", "client_secret", "issuer")}
    try:
        return OAuth(scopes=_texts(given, "scopes", at), port=port, **texts)
    except ConfigError as error:
        raise ConfigError(f"{at}: {error}") from None


def _check_url(url: str, at: str) -> None:
    if not addresses.is_web(url):
        raise ConfigError(f"{at}: url must be an address such as https://host/mcp")


def _host(netloc: str) -> str:
    return netloc.rpartition("@")[2]


def _text(values: Mapping[str, Any], key: str, at: str) -> str | None:
    value = values.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value:
        raise ConfigError(f"{at}: {key} must be a text")
    return value


def _texts(values: Mapping[str, Any], key: str, at: str) -> tuple[str, ...]:
    value = values.get(key, ())
    if isinstance(value, str) and key in ("direct", "scopes"):
        value = value.split()
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{at}: {key} must be a list of texts")
    return tuple(_plain_value(item, key, at) for item in value)


def _texts_by_name(values: Mapping[str, Any], key: str, at: str) -> dict[str, str]:
    value = values.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigError(f"{at}: {key} must be a table of texts")
    found = {str(name): _plain_value(item, key, at) for name, item in value.items()}
    for name, item in found.items():
        # A line break in a header would begin another header.
        bad = not name or "=" in name or "\0" in name
        if bad or (key == "headers" and not (name.isprintable() and item.isprintable())):
            raise ConfigError(f"{at}: {key} has a name or a value that can't be sent")
    return found


def _plain_value(value: Any, key: str, at: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"{at}: {key} must hold texts")
    return value


def _seconds(values: Mapping[str, Any], key: str, at: str, strict: bool) -> float | None:
    value = values.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ConfigError(f"{at}: {key} must be a number of seconds")
    # Several clients count in milliseconds; nobody means a quarter of an hour by 1000.
    return value / 1000 if not strict and value >= 1000 else float(value)


def _flag(values: Mapping[str, Any], key: str, at: str, default: bool) -> bool:
    value = values.get(key, default)
    if not isinstance(value, bool):
        raise ConfigError(f"{at}: {key} must be true or false")
    return value
