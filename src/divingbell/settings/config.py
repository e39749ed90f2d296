"""One typed Settings, read once: arguments over environment over file over defaults."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.host import requirements
from divingbell.models import Limits
from divingbell.settings import mcp_json, sources, tables
from divingbell.settings.agent import AgentSettings
from divingbell.settings.audit import AuditLogSettings, AuditMode
from divingbell.settings.experiment import ExperimentSettings
from divingbell.settings.markers import (
    Described,
    FilePath,
    IsPath,
    ReadBy,
    at_least,
    more_than,
)
from divingbell.settings.metrics import MetricsMode
from divingbell.settings.policy import Policy
from divingbell.settings.privacy import Privacy, PrivacyRules
from divingbell.settings.review import ReviewSettings
from divingbell.settings.serve_modes import ServeMode
from divingbell.settings.servers import Entry, read_entries
from divingbell.settings.service import ServiceSettings
from divingbell.settings.skills import SkillsMode
from divingbell.settings.sources import Found, Source
from divingbell.settings.tables import Place
from divingbell.settings.traces import TracesMode
from divingbell.settings.vault import VaultSettings

log = logs.logger("divingbell")

PREFIX = "DIVINGBELL_"
_SECONDS = Described("a number of seconds")


@dataclass(frozen=True, slots=True)
class Settings:
    """How Divingbell behaves: a tree, each of whose branches is a table of the file.

    Every field can be set in the file and as an argument, and what is no table in the environment.
    The names of backends are not checked here: `divingbell.sandbox.registry` knows them.
    """

    backend: str = "local"
    """The wall around the code."""
    backend_order: tuple[str, ...] = ()
    """For backend = "auto": what is tried, in this order; empty: all, the strongest first."""
    backend_minimum: str = "docker"
    """The weakest backend that may be used."""
    node_backend: str = "local"
    """For backend = "ray": the wall around the code on each node, by its name, or "auto"."""
    ray_address: str = "auto"
    """For backend = "ray": the address of the Ray cluster; "auto": the one of this machine."""
    ray_insecure: bool = False
    """Whether a Ray cluster may be used that lets anybody in who can reach it."""
    node_port: Annotated[int, at_least(0)] = 0
    """The port on which a node listens for lines of fronts; 0: any that is free."""
    platform: Literal["auto", "systrap", "ptrace", "kvm"] = "auto"
    """How the gvisor backend catches system calls: "systrap", "ptrace", "kvm" or "auto"."""
    limits: Limits = field(default_factory=Limits)
    """What a session may use, unless it asks for something else."""
    packages: tuple[str, ...] = ()
    """Packages besides those of the default profile."""
    preload: tuple[str, ...] = ("numpy", "pandas", "matplotlib.pyplot")
    """Modules that every session finds imported already."""
    mounts: Mapping[str, FilePath] = field(default_factory=dict)
    """Folders of the host to show read-only: path inside = path outside."""
    workspace: Annotated[str, IsPath(besides=("memory",)), Described('"memory" or a path')] = (
        "memory"
    )
    """Where /workspace lives: "memory", or a folder of the host (no size limit then)."""
    max_sessions: Annotated[int, at_least(1)] = 300
    """Sessions at once."""
    open_timeout: Annotated[float, _SECONDS, at_least(0)] = 10.0
    """Seconds to wait for a place when all are taken."""
    idle_timeout: Annotated[float, _SECONDS, more_than(0)] = 1800.0
    """Seconds without a run after which a session ends."""
    pool: Annotated[int, at_least(0)] = 2
    """Sessions kept ready, at least; 0 for none."""
    pool_most: Annotated[int, at_least(0)] = 50
    """Sessions kept ready at most, while many are opened."""
    copy_after: Annotated[float, _SECONDS, at_least(0)] = 0.3
    """Idle seconds after a cell before a copy of the interpreter is made; 0 for none."""
    interrupt_grace: Annotated[float, _SECONDS, more_than(0)] = 1.0
    """Seconds between the interrupt and the kill of a cell that is out of time."""
    cgroups: Literal["auto", "require", "off"] = "auto"
    """Limits by cgroups: "auto" (where they can be had), "require" or "off"."""
    uid_base: Annotated[int, at_least(1000)] = 1_900_000_000
    """Started by root: the first of the uids given to sessions, one each."""
    uid_count: Annotated[int, at_least(1024)] = 65_536
    """How many uids there are."""

    mcp_config: FilePath = ""
    """A list of MCP servers in the form of other clients: the path of an mcp.json."""
    mode: ServeMode = "code"
    """As an MCP server: "code", "hybrid", which also passes chosen tools through, or "direct",
    which passes all through and runs no code."""
    search: Literal["auto", "words", "meaning"] = "auto"
    """How tools are found: by "words", also by "meaning", or "auto": as far as is installed."""
    search_model: FilePath = ""
    """For search by meaning: a folder with a sentence model of your own, as ONNX."""
    servers: Annotated[tuple[Entry, ...], ReadBy(read_entries)] = ()
    """The MCP servers whose tools the code may call: one table [servers.NAME] each."""
    policy: Policy = field(default_factory=Policy)
    """The rules for their tools: the table [policy]."""
    privacy: Annotated[
        Privacy | None,
        Described('"off" or "secrets" or "personal" (and details in the table [privacy_rules])'),
    ] = None
    """What models do not see: "secrets", "personal" (personal data, too) or "off"; if it is not
    set, secrets in `divingbell serve` and "off" elsewhere."""
    privacy_rules: PrivacyRules = field(default_factory=PrivacyRules)
    """What is hidden besides, and from whom: the table [privacy_rules]."""
    vault: VaultSettings = field(default_factory=VaultSettings)
    """Where hidden values are kept, and for how long: the table [vault]."""
    audit: Annotated[
        AuditMode | None,
        Described('"off" or "on" or "required" (and details in the table [audit_log])'),
    ] = None
    """The audit log: "on" (no tool is called without a record), "required" (nor is code run) or
    "off"; if it is not set, "on" in `divingbell serve` and "off" elsewhere."""
    audit_log: AuditLogSettings = field(default_factory=AuditLogSettings)
    """Where the audit log lies, and what proves it: the table [audit_log]."""
    review: ReviewSettings = field(default_factory=ReviewSettings)
    """What happens about code that is looked at before it runs: the table [review]."""
    agent: AgentSettings = field(default_factory=AgentSettings)
    """The model that `divingbell chat` asks, and how it works: the table [agent]."""
    experiment: ExperimentSettings = field(default_factory=ExperimentSettings)
    """The share of users that each mode has, of the agent and of `serve`: the table
    [experiment]."""
    metrics: Annotated[MetricsMode | None, Described('"on" or "off"')] = None
    """Counts for a monitor: "on" or "off"; if it is not set, "on" in `divingbell serve --http` and
    "off" elsewhere."""
    traces: TracesMode = "off"
    """Spans of OpenTelemetry for requests, cells and calls of tools: "on" or "off"."""
    token_price: Annotated[float, Described("a number of US dollars"), at_least(0)] = 0.0
    """US dollars for a million tokens that a model reads, for the cost that is saved; 0: not
    told."""
    service: ServiceSettings = field(default_factory=ServiceSettings)
    """How many cells run at once over HTTP, and how the server ends: the table [service]."""
    skills: Annotated[SkillsMode | None, Described('"on" or "off"')] = None
    """Skills, which code can save and use again: "on" or "off"; if it is not set, "on" in
    `divingbell serve` and "off" elsewhere."""
    GONE: ClassVar[Mapping[str, str]] = {
        "runtime": 'write backend = "docker-runsc" for Docker with gVisor, or take the line out'
    }

    def __post_init__(self) -> None:
        tables.check(self)
        try:
            requirements.checked(self.packages)
        except ValueError as error:
            raise ConfigError(f"packages: {error}") from None
        for number, flow in enumerate(self.policy.flow, 1):
            if flow.kinds:
                try:
                    self.privacy_rules.check_flow(flow)
                except ValueError as error:
                    raise ConfigError(f"[policy.flow], flow {number}: {error}") from None
        for inside, outside in self.mounts.items():
            parts = Path(inside).parts
            if not inside.startswith("/") or len(parts) < 2 or ".." in parts:
                raise ConfigError(f"mounts: {inside!r} must be an absolute path below /")
            if parts[1] in _RESERVED:
                raise ConfigError(
                    f"mounts: /{parts[1]} is taken; choose another place than {inside}"
                )
            if not os.path.exists(outside):
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
    given: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for raw, place in _sources(found.settings, environment, overrides or {}):
        given |= tables.values(Settings, raw, place, apart=["limits", *tables.names(Limits)])
        limits |= _limits(raw, place)
    entries = list(given.pop("servers", ()))
    arguments = {key for key, value in (overrides or {}).items() if value is not None}
    if "servers" not in arguments or "mcp_config" in arguments:
        # Servers that are given as an argument are all there are: `servers={}` means none.
        entries += _more_servers(given.get("mcp_config", ""), found.servers, environment, entries)
    return Settings(**given, servers=tuple(entries), limits=Limits(**limits))


def with_limits(limits: Limits, changes: Mapping[str, Any]) -> Limits:
    """Return the limits with those changes that are not None.

    Raises:
        ConfigError: a name or a value can't be used.
    """
    return replace(limits, **tables.values(Limits, changes, Place(_ARGUMENTS)))


_ARGUMENTS = "the arguments"


def _sources(
    file: Source | None, environment: Mapping[str, str], overrides: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], Place]]:
    """What each source says, and its place; a later one wins."""
    if file is not None:
        yield (
            file.settings(),
            Place(str(file.path), folder=file.path.parent, environment=environment),
        )
    yield _from_environment(environment), Place("the environment", are_texts=True)
    yield overrides, Place(_ARGUMENTS, environment=environment)


def _limits(raw: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The limits of one source. They are in the table [limits], or stand at the top."""
    top = {name: raw[name] for name in tables.names(Limits) if name in raw}
    table = raw.get("limits")
    if table is None or isinstance(table, Limits):
        table = asdict(table) if table else {}
    found = tables.values(Limits, top, place)
    found |= tables.values(Limits, table, place.inner("limits"))
    tables.build(Limits, found, place)  # here it is still known where a value comes from
    return found


# Read by other parts: the folder of profiles, the development script, the vault, the audit log, a
# node, the file itself.
_NOT_SETTINGS = {
    "home", "config", "venv", "tokens", "test_data", "bench_image", "vault_key", "audit_key",
    "spool", "node_secret",
}  # fmt: skip


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    ours = {
        key.removeprefix(PREFIX).lower(): value
        for key, value in environment.items()
        if key.startswith(PREFIX)
    }
    return {name: value for name, value in ours.items() if name not in _NOT_SETTINGS}


def _more_servers(
    named: str, found: Source | None, environment: Mapping[str, str], known: list[Entry]
) -> list[Entry]:
    """The servers of the mcp.json that is named, or of the one that was found."""
    if found is not None and named in ("", str(found.path)):
        path = found.path
        entries = mcp_json.entries_of_list(found.document(), path, environment)
    elif named:
        path = Path(named)
        entries = mcp_json.read_mcp_json(path, environment)
    else:
        return []
    names = {entry.name for entry in known}
    for entry in entries:
        if entry.name in names:
            log.warning("%s: the server %r is in the settings already", path, entry.name)
    return [entry for entry in entries if entry.name not in names]
