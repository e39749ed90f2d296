"""`divingbell import`: takes the list of servers of another client over."""

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from divingbell.errors import ConfigError
from divingbell.host import private_file
from divingbell.settings import secrets
from divingbell.settings.jsonc import read_document
from divingbell.settings.mcp_json import servers_in, tidy_name
from divingbell.settings.servers import located
from divingbell.settings.sources import FILE_NAME, MCP_FILE_NAME, user_folder

CLIENTS = ("claude", "cursor", "vscode")

_COPIED = (
    "command", "args", "env", "cwd", "url", "serverUrl", "httpUrl", "headers", "type", "transport",
    "timeout", "disabled",
)  # fmt: skip
_NAMES = {"serverUrl": "url", "httpUrl": "url"}
_OURS = re.compile(r"(?:divingbell|bell)(?:\[[\w,-]*\])?(?:[=@<>~].*)?")


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of servers that were found, added and left out."""

    found: int = 0
    added: int = 0
    there: int = 0
    """They had an entry of their name already, which stays as it is."""
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A file of a client, and where in it the servers are."""

    path: Path
    project: Path | None = None
    """The folder that the file belongs to, if it belongs to one."""
    keys: tuple[str, ...] = ()

    @property
    def lies_in_a_project(self) -> bool:
        """Whether it is one of the project's own files, which may be a stranger's."""
        return self.project is not None and not self.keys


def take_over(
    source: str,
    *,
    to: str | Path | None = None,
    dry_run: bool = False,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
    say: Callable[[str], None] = print,
) -> Counts:
    """Add the servers of `source`, a client's name or a file, to an mcp.json of ours.

    Entries that are there already stay as they are. `say` hears what was done, line by line.

    Raises:
        ConfigError: no list was found, or one can't be read or written.
    """
    folder = (folder or Path.cwd()).absolute()
    target = _target(to, environment, folder)
    entries = list(_entries(source, environment, folder, target, say))
    document, table = _current(target)
    added = there = skipped = 0
    for name, raw, place in entries:
        if _is_ours(name, raw):
            say(f"{name}: left out, it is Divingbell itself")
            skipped += 1
            continue
        entry = _converted(raw, place, name, say)
        if entry is None:
            skipped += 1
        elif name in table:
            there += 1
            same = table[name] == entry
            words = "is there already" if same else "stays as it is; the one found is different"
            say(f"{name}: {words}")
        else:
            table[name] = entry
            added += 1
            say(f"{name}: {'would be added' if dry_run else 'added'} ({_kind(entry)})")
            for line in _warnings(name, entry):
                say(line)
    if added and not dry_run:
        _write(target, document)
    say(_summary(len(entries), added, target, dry_run))
    if added and not dry_run:
        say("In the client's own list this can take the place of them all:")
        say(json.dumps({"divingbell": _own_entry(target)}))
    return Counts(len(entries), added, there, skipped)


def _own_entry(target: Path) -> dict[str, Any]:
    """Return the entry of Divingbell in a client's list; clients start programs from any folder."""
    command = Path(sys.executable).with_name("divingbell")
    found = str(command) if command.exists() else "divingbell"
    return {"command": found, "args": ["serve", "--mcp-config", str(target)]}


def places(client: str, environment: Mapping[str, str], folder: Path) -> list[Place]:
    """Return where a client keeps its servers: the folder's own first, then the user's."""
    home = Path(environment.get("HOME") or "/")
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    mac = home / "Library/Application Support"
    if client == "claude":
        desktop = "Claude/claude_desktop_config.json"
        code = home / ".claude.json"
        projects = [
            Place(code, above, ("projects", str(above))) for above in (folder, *folder.parents)
        ]
        return [
            Place(folder / ".mcp.json", folder),
            *projects,
            Place(code),
            Place(settings / desktop),
            Place(mac / desktop),
        ]
    if client == "cursor":
        return [Place(folder / ".cursor/mcp.json", folder), Place(home / ".cursor/mcp.json")]
    return [
        Place(folder / ".vscode/mcp.json", folder),
        Place(settings / "Code/User/mcp.json"),
        Place(mac / "Code/User/mcp.json"),
        Place(settings / "Code - Insiders/User/mcp.json"),
    ]


def _place(path: str, environment: Mapping[str, str], folder: Path) -> Place:
    """Return the place that a path names; it may be that of a client in this folder."""
    known = [place for client in CLIENTS for place in places(client, environment, folder)]
    same = (place for place in known if place.path == folder / path and not place.keys)
    return next(same, Place(folder / path))


def _entries(
    source: str,
    environment: Mapping[str, str],
    folder: Path,
    target: Path,
    say: Callable[[str], None],
) -> Iterator[tuple[str, Mapping[str, Any], Place]]:
    """Yield name, entry and place of each server; of two with a name, the nearer one."""
    named = source in CLIENTS
    looked = places(source, environment, folder) if named else [_place(source, environment, folder)]
    if not named and not looked[0].path.is_file():
        raise ConfigError(f"there is no file {source}; name a file, or one of {', '.join(CLIENTS)}")
    seen: set[str] = set()
    found = False
    for place in looked:
        if not place.path.is_file() or place.path.resolve() == target:
            continue
        table = _table(read_document(place.path), place)
        if table is None:
            continue
        found = True
        if named and place.lies_in_a_project:
            say(
                f"{place.path}: left out, it came with this folder; to take it over all the same: "
                f"divingbell import {shlex.quote(str(place.path))}"
            )
            continue
        if table:
            say(f"{place.path}: {len(table)} {'server' if len(table) == 1 else 'servers'}")
        for given, raw in table.items():
            name = tidy_name(given)
            if name in seen:
                say(f"{name}: left out, there is a nearer one of that name")
            elif not isinstance(raw, Mapping):
                say(f"{name}: left out, it is no entry of a server")
            else:
                seen.add(name)
                yield name, raw, place
    if not found:
        paths = dict.fromkeys(str(place.path) for place in looked)
        looked_at = "\n  ".join(paths)
        raise ConfigError(f"no list of servers was found. Looked at:\n  {looked_at}")


def _table(document: Any, place: Place) -> Mapping[str, Any] | None:
    for key in place.keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    table = servers_in(document)
    return table if isinstance(table, Mapping) else None


def _target(to: str | Path | None, environment: Mapping[str, str], folder: Path) -> Path:
    if to is not None:
        return (folder / to).resolve()
    # Where commands find it again without its being named: see divingbell.settings.sources.
    beside = folder if (folder / FILE_NAME).is_file() else user_folder(environment)
    return (beside / MCP_FILE_NAME).resolve()


def _current(target: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the file that is to be added to, and the table of servers in it."""
    if not target.exists():
        table: dict[str, Any] = {}
        return {"mcpServers": table}, table
    document = read_document(target)
    if not isinstance(document, dict):
        raise ConfigError(f"{target} is not a list of servers")
    key = "servers" if "servers" in document and "mcpServers" not in document else "mcpServers"
    table = document.setdefault(key, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{target}: `{key}` must be a table, name by name")
    return document, table


def _converted(
    raw: Mapping[str, Any], place: Place, name: str, say: Callable[[str], None]
) -> dict[str, Any] | None:
    """Return the entry as it is written to our file."""
    entry = {_NAMES.get(key, key): value for key, value in raw.items() if key in _COPIED}
    if "command" not in entry and "url" not in entry:
        say(f"{name}: left out, it has neither `command` nor `url`")
        return None
    if "envFile" in raw:
        say(f"{name}: `envFile` is not read here; name its variables under `env`")
    asked: set[str] = set()
    entry = {key: _values(value, place, asked) for key, value in entry.items()}
    for variable in sorted(asked):
        say(f"{name}: set the variable {variable}; the other client asks for that value")
    _locate(entry, place.project or place.path.absolute().parent)
    return entry


def _locate(entry: dict[str, Any], folder: Path) -> None:
    """Make paths of an entry absolute: it is written to a file that lies elsewhere."""
    cwd = entry.get("cwd")
    if isinstance(cwd, str):
        if not cwd.startswith("${"):  # that is filled in later
            entry["cwd"] = os.path.normpath(folder / Path(cwd).expanduser())
    elif isinstance(entry.get("command"), str):
        given = entry.get("args")
        words = [str(word) for word in given] if isinstance(given, list) else []
        entry["command"], *arguments = located([entry["command"], *words], folder)
        if given is not None:
            entry["args"] = arguments


def _values(value: Any, place: Place, asked: set[str]) -> Any:
    """Return a value with the variables of other clients written as ours."""
    if isinstance(value, Mapping):
        return {key: _values(item, place, asked) for key, item in value.items()}
    if isinstance(value, list):
        return [_values(item, place, asked) for item in value]
    if not isinstance(value, str):
        return value

    def question(found: re.Match[str]) -> str:
        variable = re.sub(r"\W", "_", found[1]).upper()
        asked.add(variable)
        return f"${{{variable}}}"

    value = re.sub(r"\$\{input:([^}]+)\}", question, value)
    value = value.replace("${userHome}", "${HOME}")
    if place.project is not None:
        value = re.sub(r"\$\{workspaceFolder(?::[^}]*)?\}", lambda _: str(place.project), value)
    return value


def _is_ours(name: str, raw: Mapping[str, Any]) -> bool:
    if name == "divingbell":
        return True
    arguments = raw.get("args")
    words = [raw.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return any(
        isinstance(word, str) and _OURS.fullmatch(PurePath(word).name) is not None
        for word in words[:4]
    )


def _kind(entry: Mapping[str, Any]) -> str:
    return "a command" if "command" in entry else "an address"


def _warnings(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each secret that stands in the entry itself."""
    advice = "put it into the environment and write ${{{}}}"
    for part in ("env", "headers"):
        table = entry.get(part)
        for key, value in table.items() if isinstance(table, Mapping) else ():
            plain = isinstance(value, str) and "${" not in value
            if plain and (secrets.looks_secret(key, value) or secrets.in_url(value)):
                variable = re.sub(r"\W", "_", key).upper()
                yield f"{name}: {key} is a secret in plain text; {advice.format(variable)}"
    arguments = [item for item in entry.get("args") or [] if isinstance(item, str)]
    plain_arguments = [item for item in arguments if "${" not in item]
    url = entry.get("url")
    if secrets.in_arguments(plain_arguments):
        yield f"{name}: `args` holds a secret in plain text; {advice.format('VARIABLE')}"
    if isinstance(url, str) and "${" not in url and secrets.in_url(url):
        yield f"{name}: `url` holds a secret in plain text; {advice.format('VARIABLE')}"


def _write(target: Path, document: Mapping[str, Any]) -> None:
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        private_file.write(target, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ConfigError(f"{target} can't be written: {error.strerror}") from None


def _summary(found: int, added: int, target: Path, dry_run: bool) -> str:
    if added == 0:
        return f"{found} found, nothing to add to {target}"
    if dry_run:
        return f"{found} found, {added} would be added to {target}"
    return f"{found} found, {added} added to {target}"
