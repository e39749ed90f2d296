"""One typed Settings, read once: arguments over environment over file over defaults."""

import difflib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from divingbell.errors import ConfigError
from divingbell.host import requirements
from divingbell.models import Limits, parse_size
from divingbell.settings import servers as gateway_servers
from divingbell.settings import sources
from divingbell.settings.policy import Policy
from divingbell.settings.servers import Entry
from divingbell.settings.sources import Found, Source

log = logging.getLogger("divingbell")

PREFIX = "DIVINGBELL_"
PLATFORMS = ("auto", "systrap", "ptrace", "kvm")
CGROUPS = ("auto", "require", "off")
MODES = ("code", "hybrid")
SEARCHES = ("auto", "words", "meaning")
_LISTS = ("packages", "preload", "backend_order")
_PATHS = ("workspace", "mcp_config", "mounts", "search_model")
_SIZES = {"memory", "disk", "output"}


@dataclass(frozen=True, slots=True)
class Settings:
    """How Divingbell behaves. Every field can be set in the file and in the environment.

    The names of backends are not checked here: `divingbell.sandbox.registry` knows them.
    """

    backend: str = "local"
    """The wall around the code."""
    backend_order: tuple[str, ...] = ()
    """For backend = "auto": what is tried, in this order; empty: all, the strongest first."""
    backend_minimum: str = "docker"
    """The weakest backend that may be used."""
    platform: str = "auto"
    """How the gvisor backend catches system calls: "systrap", "ptrace", "kvm" or "auto"."""
    limits: Limits = field(default_factory=Limits)
    """What a session may use, unless it asks for something else."""
    packages: tuple[str, ...] = ()
    """Packages besides those of the default profile."""
    preload: tuple[str, ...] = ("numpy", "pandas", "matplotlib.pyplot")
    """Modules that every session finds imported already."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Folders of the host to show read-only: path inside = path outside."""
    workspace: str = "memory"
    """Where /workspace lives: "memory", or a folder of the host (no size limit then)."""
    max_sessions: int = 300
    """Sessions at once."""
    open_timeout: float = 10.0
    """Seconds to wait for a place when all are taken."""
    idle_timeout: float = 1800.0
    """Seconds without a run after which a session ends."""
    pool: int = 2
    """Sessions kept ready, at least; 0 for none."""
    pool_most: int = 50
    """Sessions kept ready at most, while many are opened."""
    copy_after: float = 0.3
    """Idle seconds after a cell before a copy of the interpreter is made; 0 for none."""
    interrupt_grace: float = 1.0
    """Seconds between the interrupt and the kill of a cell that is out of time."""
    cgroups: str = "auto"
    """Limits by cgroups: "auto" (where they can be had), "require" or "off"."""
    uid_base: int = 1_900_000_000
    """Started by root: the first of the uids given to sessions, one each."""
    uid_count: int = 65_536
    """How many uids there are."""

    mcp_config: str = ""
    """A list of MCP servers in the form of other clients: the path of an mcp.json."""
    mode: str = "code"
    """As an MCP server: "code", or "hybrid", which also passes chosen tools through."""
    search: str = "auto"
    """How tools are found: by "words", also by "meaning", or "auto": as far as is installed."""
    search_model: str = ""
    """For search by meaning: a folder with a sentence model of your own, as ONNX."""
    servers: tuple[Entry, ...] = ()
    """The MCP servers whose tools the code may call: one table [servers.NAME] each."""
    policy: Policy = field(default_factory=Policy)
    """The rules for their tools: the table [policy]."""

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("mode", self.mode, MODES),
            ("search", self.search, SEARCHES),
            ("platform", self.platform, PLATFORMS),
        ):
            if value not in choices:
                raise ConfigError(f"{name} is {value!r}: it can be {', '.join(choices)}")
        try:
            requirements.checked(self.packages)
        except ValueError as error:
            raise ConfigError(f"packages: {error}") from None
        if self.cgroups not in CGROUPS:
            raise ConfigError(f"cgroups is {self.cgroups!r}: it can be {', '.join(CGROUPS)}")
        if self.max_sessions < 1 or self.pool < 0 or self.pool_most < 0:
            raise ConfigError("max_sessions must be at least 1, pool and pool_most at least 0")
        if self.idle_timeout <= 0 or self.open_timeout < 0 or self.interrupt_grace <= 0:
            raise ConfigError("idle_timeout and interrupt_grace must be more than 0 seconds")
        if self.copy_after < 0:
            raise ConfigError("copy_after must be 0 (no copies) or more seconds")
        if self.uid_base < 1000 or self.uid_count < 1024:
            raise ConfigError("uid_base must be at least 1000 and uid_count at least 1024")
        for inside, outside in self.mounts.items():
            parts = Path(inside).parts
            if not inside.startswith("/") or len(parts) < 2 or ".." in parts:
                raise ConfigError(f"mounts: {inside!r} must be an absolute path below /")
            if parts[1] in _RESERVED:
                raise ConfigError(
                    f"mounts: /{parts[1]} is taken; choose another place than {inside}"
                )
            if not Path(outside).exists():
                raise ConfigError(f"mounts: {outside} does not exist on this machine")


_RESERVED = {
    "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "opt", "proc", "root", "run", "sbin",
    "sys", "template", "tmp", "usr", "workspace", "servers", "skills", "host-folders", "libx32",
}  # fmt: skip


def load(
    path: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] = os.environ,
    found: Found = sources.NOTHING,
) -> Settings:
    """Read the settings from what is named here or in the environment; no other file is read.

    `found` are files that somebody else has read, for a command that looks around. They are used
    unless others are named.

    Raises:
        ConfigError: a file that was named is missing, or a setting can't be used.
    """
    if named := path or environment.get(PREFIX + "CONFIG"):
        found = Found(sources.named(named))
    values = _from_file(found.settings, environment) if found.settings is not None else {}
    values |= _flat(_from_environment(environment), "the environment")
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    tables = {key: given.pop(key) for key in _TABLES if key in given}
    values |= given | _tables(tables, "the arguments", environment, Path.cwd())
    if values.get("workspace", "memory") != "memory":
        values["workspace"] = str(Path(values["workspace"]).absolute())
    if values.get("search_model"):
        values["search_model"] = str(Path(values["search_model"]).expanduser().absolute())
    entries: list[Entry] = [*values.pop("servers", ())]
    policy = values.pop("policy", Policy())
    limits = {key: values.pop(key) for key in list(values) if key in _LIMIT_TYPES}
    typed = _typed(values, _TYPES)
    if "servers" not in tables or "mcp_config" in given:
        # Servers that are given as an argument are all there are: `servers={}` means none.
        entries += _more_servers(typed.get("mcp_config", ""), found.servers, environment, entries)
    return replace(
        Settings(),
        **typed,
        servers=tuple(entries),
        policy=policy,
        limits=Limits(**_typed(limits, _LIMIT_TYPES)),
    )


def _from_file(source: Source, environment: Mapping[str, str]) -> dict[str, Any]:
    """The values of a settings file; its paths are relative to it."""
    raw, where, folder = source.settings(), str(source.path), source.path.parent
    tables = {key: raw.pop(key) for key in _TABLES if key in raw}
    values = _flat(raw, where) | _tables(tables, where, environment, folder)
    values |= _typed({key: values[key] for key in _PATHS if key in values}, _TYPES)
    if values.get("workspace", "memory") != "memory":
        values["workspace"] = str(folder / values["workspace"])
    if values.get("mcp_config"):
        values["mcp_config"] = str(sources.list_path(source.path, values["mcp_config"]))
    if values.get("search_model"):
        values["search_model"] = str(folder / Path(values["search_model"]).expanduser())
    if "mounts" in values:
        values["mounts"] = {
            inside: str(folder / outside) for inside, outside in values["mounts"].items()
        }
    return values


def _tables(
    raw: Mapping[str, Any], where: str, environment: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    """Read those settings that are tables of their own kind."""
    made: dict[str, Any] = {}
    if "policy" in raw:
        policy = raw["policy"]
        is_made = isinstance(policy, Policy)
        made["policy"] = policy if is_made else Policy.from_mapping(policy, where)
    if "servers" in raw:
        made["servers"] = gateway_servers.read_entries(
            raw["servers"], environment, where, folder=folder
        )
    return made


def _more_servers(
    named: str, found: Source | None, environment: Mapping[str, str], known: list[Entry]
) -> list[Entry]:
    """The servers of the mcp.json that is named, or of the one that was found."""
    path = Path(named).expanduser()
    if found is not None and (not named or path == found.path):
        path = found.path
        listed = gateway_servers.listed(found.document(), path, environment)
    elif named:
        listed = gateway_servers.read_mcp_json(path, environment)
    else:
        return []
    names = {entry.name for entry in known}
    for entry in listed:
        if entry.name in names:
            log.warning("%s: the server %r is in the settings already", path, entry.name)
    return [entry for entry in listed if entry.name not in names]


def check_names(values: Mapping[str, Any]) -> None:
    """Raise ConfigError if one of the names is no setting."""
    for key in values:
        _check_name(key, "the arguments", _TYPES | _LIMIT_TYPES | dict.fromkeys(_TABLES))


def with_limits(limits: Limits, changes: Mapping[str, Any]) -> Limits:
    """Return the limits with those changes that are not None.

    Raises:
        ConfigError: a name or a value can't be used.
    """
    given = {key: value for key, value in changes.items() if value is not None}
    for key in given:
        _check_name(key, "the arguments", _LIMIT_TYPES)
    return replace(limits, **_typed(given, _LIMIT_TYPES))


def _flat(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Lift [limits] to the top and check every name."""
    limits = values.pop("limits", {})
    if not isinstance(limits, dict):
        raise ConfigError(f"{where}: limits must be a table")
    for key in limits:
        _check_name(key, f"{where}, [limits]", _LIMIT_TYPES)
    for key in values:
        _check_name(key, where, _TYPES | _LIMIT_TYPES)
    return values | limits


def _check_name(key: str, where: str, known: Mapping[str, Any]) -> None:
    if advice := _GONE.get(key):
        raise ConfigError(f"{where}: there is no setting {key!r} any more: {advice}")
    if key not in known:
        close = difflib.get_close_matches(key, known, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"{where}: there is no setting {key!r}{hint}")


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in environment.items():
        name = key.removeprefix(PREFIX).lower()
        if not key.startswith(PREFIX) or name in _NOT_SETTINGS:
            continue
        if name in _LISTS:
            found[name] = [item for item in value.replace(",", " ").split() if item]
        elif name == "mounts":
            pairs = [item.partition("=") for item in value.split(",") if item]
            found[name] = {inside: outside for inside, _, outside in pairs}
        else:
            found[name] = value
    return found


# Read by other parts: the folder of profiles, the development script, the file itself.
_NOT_SETTINGS = {"home", "config", "venv", "tokens", "test_data", "bench_image"}


def _typed(values: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _convert(key, value, types[key]) for key, value in values.items()}


def _convert(key: str, value: Any, kind: Any) -> Any:
    try:
        if key in _SIZES:
            return parse_size(value)
        if kind in (int, float, str):
            # Not the text of a list or a table: it would be the name of a file nobody named.
            if isinstance(value, bool) or (kind is str and not isinstance(value, str | Path)):
                raise ValueError
            return kind(value)
        if key in _LISTS:
            if isinstance(value, str) or not all(isinstance(item, str) for item in value):
                raise ValueError
            return tuple(value)
        if key == "mounts":
            return {str(inside): str(outside) for inside, outside in dict(value).items()}
    except (TypeError, ValueError):
        raise ConfigError(f"the setting {key} can't be {value!r}") from None
    return value


_GONE = {"runtime": 'write backend = "docker-runsc" for Docker with gVisor, or take the line out'}
"""Settings that there were once, and what to do instead."""
_TABLES = ("servers", "policy")
_TYPES = {
    item.name: item.type for item in fields(Settings) if item.name not in ("limits", *_TABLES)
}
_LIMIT_TYPES = {item.name: item.type for item in fields(Limits)}
