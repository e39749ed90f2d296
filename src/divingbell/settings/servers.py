"""Entries of upstream servers: the tables `[servers.NAME]`, and what is known of each server."""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

from divingbell.errors import ConfigError
from divingbell.settings import addresses, secrets, tables, variables
from divingbell.settings.markers import NOT_READ, Check, Described, IsPath, Seconds
from divingbell.settings.tables import Place

Transport = Literal["stdio", "http", "sse"]

START_TIMEOUT = 30.0
"""Seconds to connect: `npx` and `uvx` may have to fetch the server first."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def one_text(value: Any) -> Any:
    """Return the text for a number, true or false: arguments and variables are texts all."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def split_text(value: Any) -> Any:
    """Return a list for a text with spaces in it."""
    return value.split() if isinstance(value, str) else value


def transport_name(value: Any) -> Any:
    """Return our name for a transport, which clients spell in several ways."""
    if not isinstance(value, str):
        return value
    name = value[:80].lower().replace("-", "").replace("_", "")
    return "http" if name == "streamablehttp" else name


def oauth_table(value: Any) -> Any:
    """Return the table for `oauth`; true is an empty one, false is none.

    Raises:
        ValueError: it is something else.
    """
    if isinstance(value, bool):
        return {} if value else None
    if not isinstance(value, Mapping | OAuth):
        raise ValueError("it must be true, false or a table")
    return value


def _is_variable(name: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name


def _is_in_header(text: str) -> bool:
    return text.isprintable()  # a line break would begin another header


Text = Annotated[str, Check("not empty", lambda text: text and "\0" not in text)]
Argument = Annotated[str, one_text, Check("", lambda text: "\0" not in text)]
VariableName = Annotated[str, Described("a name that can be set"), Check("", _is_variable)]
HeaderName = Annotated[VariableName, Described("a name that can be sent"), Check("", _is_in_header)]
HeaderValue = Annotated[Argument, Described("a text in one line"), Check("", _is_in_header)]
Address = Annotated[
    str, Described("an address such as https://host/mcp"), Check("", addresses.is_web)
]
Port = Annotated[
    int, Described("a number below 65536"), Check("", lambda number: 0 <= number < 65536)
]


@dataclass(frozen=True, slots=True)
class OAuth:
    """How to sign in at a server that asks for it. All of it can be left out."""

    scopes: Annotated[tuple[Argument, ...], split_text] = ()
    client_id: Text | None = None
    client_secret: Text | None = field(default=None, repr=False)
    port: Port = 0
    """The port of this machine that the browser is sent back to; 0 for any that is free."""
    issuer: Text | None = None
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

    name: Annotated[str, NOT_READ]
    command: Text | None = None
    args: tuple[Argument, ...] = ()
    env: Mapping[VariableName, Argument] = field(default_factory=dict)
    cwd: Annotated[Text, IsPath()] | None = None
    datasets: Annotated[Text, IsPath()] | None = None
    """A folder whose files are tables: the command is then our own dataset server."""
    url: Address | None = None
    headers: Mapping[HeaderName, HeaderValue] = field(default_factory=dict)
    transport: Annotated[Transport, transport_name] = "stdio"
    timeout: Seconds | None = None
    """Seconds a call may take; None for the gateway's own limit."""
    start_timeout: Seconds = START_TIMEOUT
    per_session: bool = False
    """A connection for each session, for servers that keep state."""
    direct: Annotated[tuple[Argument, ...], split_text] = ()
    """Tools passed through in hybrid mode; `*` is all."""
    enabled: bool = True
    oauth: Annotated[OAuth | None, oauth_table] = None
    """None: never sign in."""
    expanded: Annotated[tuple[str, ...], NOT_READ] = ()
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


def check_name(name: Any) -> None:
    """Raise ConfigError if a server can't have this name."""
    # `server__tool` must have one meaning, and `a___b` would have two with a server `a_`.
    is_name = isinstance(name, str) and _NAME.fullmatch(name)
    if not is_name or "__" in name or name.endswith("_"):
        raise ConfigError(
            f"{tables.shown(name)} can't be the name of a server: it takes up to 64 letters, "
            "digits, `-` and `_`, begins with a letter or digit, does not end with `_` and has no "
            "`__`"
        )


def read_entries(raw: Any, place: Place) -> tuple[Entry, ...]:
    """Return the servers of the table `servers`; those that lack a variable are UnusableServer.

    Raises:
        ConfigError: something is misspelt.
    """
    if not isinstance(raw, Mapping):
        raise ConfigError(place.told("the servers must be a table, name by name"))
    return tuple(_entry(name, entry, place) for name, entry in raw.items())


def _entry(name: Any, raw: Any, place: Place) -> Entry:
    try:
        return read_server(name, raw, place)
    except variables.Unusable as error:
        return UnusableServer(name, str(error))


def read_server(name: Any, raw: Any, place: Place) -> Server:
    """Return the server that a table describes.

    Raises:
        Unusable: a variable that it needs is not set.
        ConfigError: it can't be used; the message names the server, never a value.
    """
    try:
        check_name(name)
    except ConfigError as error:
        raise ConfigError(place.inner("servers").told(str(error))) from None
    place = replace(place.part(f"server {name!r}"), hides_values=True)
    if not isinstance(raw, Mapping):
        raise ConfigError(place.told("it must be a table with `command` or `url`"))
    tables.check_names(Server, raw, place)
    used: dict[str, str] = {}
    try:
        filled = variables.expanded(raw, place.environment, str(place), used)
    except RecursionError:
        raise ConfigError(place.told("it is nested too deeply")) from None
    given = tables.values(Server, filled, place)
    if "datasets" in given:
        if beside := sorted({"url", "command", "args", "cwd", "env"} & given.keys()):
            raise ConfigError(place.told(f"`datasets` goes without `{beside[0]}`"))
        given["command"], given["args"] = sys.executable, _dataset_server(given["datasets"])
    if ("url" in given) == ("command" in given):
        raise ConfigError(place.told("it needs either `command` or `url`"))
    if "cwd" not in given and "command" in given and "datasets" not in given:
        # Within a folder of its own the words of an entry are left alone.
        words = located([given["command"], *given.get("args", ())], place.folder)
        given["command"], given["args"] = words[0], tuple(words[1:])
    given["transport"] = _transport(given, place)
    given["oauth"] = _oauth(given)
    kept = tuple(value for key, value in used.items() if not secrets.harmless(key, value))
    return Server(name=name, **given, expanded=kept)


def _dataset_server(folder: str) -> tuple[str, ...]:
    # Isolated: nothing of the folder that it is started in is imported.
    return ("-I", "-m", "divingbell", "datasets", "serve", folder)


def _transport(given: Mapping[str, Any], place: Place) -> Transport:
    named: Transport | None = given.get("transport")
    url = given.get("url")
    if named is None:
        if url is None:
            return "stdio"
        return "sse" if urlsplit(url).path.rstrip("/").endswith("/sse") else "http"
    if (named == "stdio") != (url is None):
        raise ConfigError(place.told("stdio goes with `command`, http and sse go with `url`"))
    return named


def _oauth(given: Mapping[str, Any]) -> OAuth | None:
    if given["transport"] == "stdio":
        return None
    if "oauth" in given:
        signing_in: OAuth | None = given["oauth"]
        return signing_in
    # A server that has its token already is not asked for another one.
    has_token = any(name.lower() == "authorization" for name in given.get("headers", ()))
    return None if has_token else OAuth()


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


def _host(netloc: str) -> str:
    return netloc.rpartition("@")[2]


def dataset_folders(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the folders whose tables servers offer, by the names of the servers."""
    return {
        entry.name: entry.datasets
        for entry in entries
        if isinstance(entry, Server) and entry.datasets is not None
    }
