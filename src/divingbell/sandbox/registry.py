"""The registry of backends: one row for each, ours and those of other packages.

A row says where the backend is found and how it differs, so that nobody else has to know its
name. Nothing of a backend is imported before one is made.

A package of somebody else adds a row by an entry point of the group `divingbell.backends`: its
name is the backend's name, its value the `Row`. Other packages are only looked at when a name is
asked for that is none of ours, or when all are: looking takes some milliseconds.
"""

import difflib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from divingbell import logs
from divingbell.errors import ConfigError, SandboxUnavailable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from divingbell.sandbox.base import Backend, BackendRequest
    from divingbell.settings.config import Settings

GROUP = "divingbell.backends"
AUTO = "auto"
RAY = "ray"
"""No wall of its own: sessions are on nodes, behind the one that `node_backend` names there."""
"""The word for whichever works: no backend can have that name."""
DEFAULT = "local"
"""The backend of the default settings, and of the table in SECURITY.md."""

log = logs.logger("divingbell")


_KINDS: Mapping[tuple[str, ...], type[Any]] = {
    ("name", "made_by", "requirement"): str,
    ("strength", "slowness"): int,
    ("options", "not_promised"): Mapping,
    ("preloads_what_is_needed", "works_without_cgroups", "sessions_have_own_uids"): bool,
    ("findings",): tuple,
}
"""The types of a row's fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One backend: where it is found, and what others need to know about it."""

    name: str
    """The word for it in the settings."""
    made_by: str
    """What is called with a `BackendRequest` and returns the Backend, as "module:attribute"."""
    strength: int
    """The higher, the stronger the wall: ours have 100 to 400. `backend_minimum` compares it, and
    `backend = "auto"` tries the strongest first."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Given to `made_by` as keywords: two rows may share one class."""
    requirement: str = ""
    """The package with the extra that it needs, as pip is told: `divingbell[docker]`."""
    preloads_what_is_needed: bool = True
    """A command that runs one piece of code has it load only what that code imports. Not where
    sessions start from something that was saved with all of `preload` in it."""
    works_without_cgroups: bool = False
    """Where there are no control groups it takes rlimits; otherwise it does not start."""
    sessions_have_own_uids: bool = True
    """Whoever starts it, what the kernel counts by uid is counted for each session alone."""
    slowness: int = 1
    """How many times as long as with the fastest backend a check of the promises may take."""
    findings: tuple[str, ...] = ()
    """What `divingbell doctor` looks at for it: functions from Settings or None to a Finding, as
    "module:attribute"."""
    not_promised: Mapping[str, str] = field(default_factory=dict)
    """Of a backend that promises.toml does not name: the reason for each promise that it does not
    make, by the promise's id. It makes all others."""

    def __post_init__(self) -> None:
        # Other packages make rows too, and no type checker has to have looked at them.
        for names, kind in _KINDS.items():
            for name in names:
                value = getattr(self, name)
                if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                    raise TypeError(f"the row's {name} must be {kind.__name__}, not {value!r:.100}")
        for reference in self.findings:
            if not isinstance(reference, str):
                raise TypeError(f"the row's findings must be texts, not {reference!r:.100}")

    @property
    def install_command(self) -> str:
        """The command that installs what it needs; empty if it needs nothing."""
        return f'pip install "{self.requirement}"' if self.requirement else ""


_IMAGE = "divingbell.sandbox.contained.findings:image"
_DOCKER: dict[str, Any] = {
    "made_by": "divingbell.sandbox.docker.backend:DockerBackend",
    "requirement": "divingbell[docker]",
    "findings": ("divingbell.sandbox.docker.findings:docker", _IMAGE),
}
OURS = (
    Row(
        name="local",
        made_by="divingbell.sandbox.local.backend:LocalBackend",
        strength=200,
        works_without_cgroups=True,
        sessions_have_own_uids=False,
    ),
    Row(name="docker", strength=100, slowness=3, **_DOCKER),
    Row(
        name="docker-runsc",
        strength=300,
        slowness=4,
        options={"runtime": "runsc"},
        **_DOCKER,
    ),
    Row(
        name="gvisor",
        made_by="divingbell.sandbox.gvisor.backend:GVisorBackend",
        strength=400,
        preloads_what_is_needed=False,  # there is a checkpoint with all of it
        slowness=4,
        findings=(
            "divingbell.sandbox.gvisor.findings:runsc",
            _IMAGE,
            "divingbell.sandbox.gvisor.findings:restore",
        ),
    ),
)
"""In the order of the tables in the docs."""
_BY_NAME = {row.name: row for row in OURS}


def names_of_ours() -> list[str]:
    """The names of our own backends, the strongest first."""
    return [row.name for row in _by_strength(OURS)]


def every() -> list[Row]:
    """All backends that are installed, the strongest first; what can't be loaded is logged."""
    rows = list(OURS)
    for name in _names_of_others():
        try:
            rows.append(find(name))
        except ConfigError as error:
            log.warning("%s", error)
    return _by_strength(rows)


def find(name: str) -> Row:
    """Return the row of this name.

    Raises:
        ConfigError: there is none, or that of another package can't be loaded.
    """
    if row := _BY_NAME.get(name):
        return row
    found = [point for point in _entry_points() if point.name == name and _is_free(name)]
    if not found:
        raise ConfigError(f"there is no backend {name!r}{_instead(name)}")
    if len(found) > 1:
        packages = ", ".join(sorted(_package_of(point) for point in found))
        raise ConfigError(
            f"several packages have a backend {name!r} ({packages}): uninstall all but one"
        )
    return _loaded(found[0])


def wall_of(settings: "Settings") -> str:
    """The backend behind which code runs, wherever that is."""
    return settings.node_backend if settings.backend == RAY else settings.backend


def check(settings: "Settings") -> None:
    """See whether the backends that the settings name are there, and none is below the minimum.

    Raises:
        ConfigError: one is not there, or all that may be tried are too weak.
    """
    minimum = _named(settings.backend_minimum, "backend_minimum")
    order = [_named(name, "backend_order") for name in settings.backend_order]
    if (name := wall_of(settings)) != AUTO:
        order = [_named(name, "node_backend" if settings.backend == RAY else "backend")]
    if order and not any(row.strength >= minimum.strength for row in order):
        raise ConfigError(
            f"{', '.join(row.name for row in order)} is below the backend_minimum, "
            f'"{minimum.name}": choose a stronger one, or set a lower backend_minimum'
        )


def allowed(settings: "Settings") -> list[Row]:
    """The backends that `backend = "auto"` tries, in order: none is below the minimum.

    Raises:
        ConfigError: one that the settings name is not there.
    """
    lowest = find(settings.backend_minimum).strength
    order = [find(name) for name in settings.backend_order] or every()
    return [row for row in order if row.strength >= lowest]


def make(row: Row, request: "BackendRequest") -> "Backend":
    """Return the backend of this row; only now its module is imported.

    Raises:
        SandboxUnavailable: it can't be imported; the message says what to install.
    """
    made: Backend = load(row, row.made_by)(request, **row.options)
    return made


def load(row: Row, reference: str) -> Any:
    """Return what a row names as "module:attribute".

    Raises:
        SandboxUnavailable: it can't be imported; the message says what to install.
    """
    module, _, attribute = reference.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # whatever the code of that package raises
        advice = row.install_command or "reinstall the package that it comes from"
        raise SandboxUnavailable(
            f"the backend {row.name} can't be loaded ({type(error).__name__}: {error}): {advice}"
        ) from error


def _by_strength(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: -row.strength)


def _named(name: str, setting: str) -> Row:
    try:
        return find(name)
    except ConfigError as error:
        raise ConfigError(f"{setting}: {error}") from None


def _instead(name: str) -> str:
    """The rest of a message: which backends there are."""
    known = [*names_of_ours(), *_names_of_others()]
    close = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {close[0]!r}?" if close else "."
    return f"{meant} There are {', '.join(known)}, {AUTO!r} takes the first that works, "
    f"and {RAY!r} has sessions on other machines"


# Those of other packages


def _entry_points() -> Sequence["EntryPoint"]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _names_of_others() -> list[str]:
    return sorted({point.name for point in _entry_points() if _is_free(point.name)})


def _is_free(name: str) -> bool:
    """Whether another package may have a backend of this name."""
    return name not in _BY_NAME and name not in (AUTO, RAY)


def _package_of(point: "EntryPoint") -> str:
    return point.dist.name if point.dist is not None else point.module


def _loaded(point: "EntryPoint") -> Row:
    package = _package_of(point)
    try:
        row = point.load()
    except (Exception, SystemExit) as error:  # whatever the code of that package raises
        raise ConfigError(
            f"the backend {point.name!r} of the package {package} can't be loaded "
            f"({type(error).__name__}: {error}): repair or uninstall that package"
        ) from error
    if not isinstance(row, Row) or row.name != point.name:
        raise ConfigError(
            f"the package {package} has a backend {point.name!r}, but its entry point "
            f"{point.value} is no divingbell.sandbox.registry.Row of that name: "
            "repair or uninstall that package"
        )
    return row
