"""The options that commands share. What is not given stays None, so that it is looked up in
the environment, the file and the defaults."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from divingbell.errors import ConfigError
from divingbell.models import GB, KB, MB, Limits
from divingbell.sandbox import registry
from divingbell.settings.sources import NOTHING
from divingbell.surfaces.cli.terminal.notes import tell

if TYPE_CHECKING:
    from divingbell.settings.config import Settings

_DEFAULTS = Limits()
_LIMITS = Group("Limits", sort_key=10)
_SANDBOX = Group("Sandbox", sort_key=20)
_FILES = Group("Files", sort_key=30)
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def _limit(help: str, default: str, metavar: str) -> Parameter:
    return Parameter(
        help=f"{help.rstrip('.')} [default: {default}].", group=_LIMITS, metavar=metavar
    )


def size(number: int) -> str:
    """Return a number of bytes as it would be written on the command line."""
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "KB")):
        if number >= unit:
            return f"{number / unit:.4g}{name}"
    return f"{number}B"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HostOptions:
    """The options of every command."""

    backend: Annotated[
        str | None,
        Parameter(
            help=f"The wall around the code: {', '.join(registry.names_of_ours())}, one of another "
            f"package, or {registry.AUTO}; or {registry.RAY}: on the nodes of a cluster "
            f"[default: {registry.DEFAULT}].",
            group=_SANDBOX,
        ),
    ] = None
    config: Annotated[
        Path | None,
        Parameter(
            help="The settings file [default: divingbell.toml of this folder, once it is trusted, "
            "or of ~/.config/divingbell].",
            group=_SANDBOX,
            metavar="FILE",
        ),
    ] = None
    mcp_config: Annotated[
        Path | None,
        Parameter(
            help="A list of MCP servers whose tools the code may call: an mcp.json.",
            group=_SANDBOX,
            metavar="FILE",
        ),
    ] = None
    verbose: Annotated[
        bool, Parameter(alias="-v", negative=(), help="Show the host's own log on stderr.")
    ] = False

    def load(self, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read the settings; files of the current folder are used once they are trusted.

        A person may be asked, which takes its time: this is done before an event loop runs.

        Raises:
            ConfigError: they can't be used.
        """
        from divingbell.settings import config, trust
        from divingbell.surfaces.cli import trusting

        self.start_log()
        found = NOTHING
        if self.config is None and not environment.get("DIVINGBELL_CONFIG"):
            found = trust.find(
                _current_folder(),
                environment,
                with_list=self.mcp_config is None and not environment.get("DIVINGBELL_MCP_CONFIG"),
                ask=trusting.asker(),
                tell=tell,
            )
        settings = config.load(self.config, self.settings(), environment, found)
        registry.check(settings)
        return settings

    def settings(self) -> dict[str, Any]:
        """Return the settings that were given as options."""
        mcp_config = None if self.mcp_config is None else str(self.mcp_config)
        return {"backend": self.backend, "mcp_config": mcp_config}

    def start_log(self) -> None:
        """Show the host's log if that was asked for, and only then."""
        logger = logging.getLogger("divingbell")
        if self.verbose:
            handler: logging.Handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(_LOG_FORMAT))
            logger.setLevel(logging.DEBUG)
        else:
            handler = logging.NullHandler()  # without one, Python prints warnings to stderr
        logger.addHandler(handler)


def privacy_help(default: str) -> Parameter:
    """Return the help of `--privacy`, for a command with this default."""
    return Parameter(
        help="What models do not see: secrets, personal (personal data too), or off "
        f"[default: {default}]."
    )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PrivacyOptions(HostOptions):
    """The options of commands whose output a model may read."""

    privacy: Annotated[str | None, privacy_help("off")] = None
    private: Annotated[
        bool, Parameter(negative=(), help="Keep personal data from models: --privacy personal.")
    ] = False

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "privacy": self.chosen_privacy()}

    def chosen_privacy(self) -> str | None:
        """Return the word for `privacy`, if one was given.

        Raises:
            ConfigError: both options were, and they do not agree.
        """
        if self.private and self.privacy not in (None, "personal"):
            raise ConfigError("--private and --privacy exclude each other: leave one of them out")
        return "personal" if self.private else self.privacy


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SandboxOptions(PrivacyOptions):
    """The options of commands that open a session."""

    timeout: Annotated[
        float | None, _limit("Wall time of a cell.", f"{_DEFAULTS.timeout:g}", "SECONDS")
    ] = None
    ceiling: Annotated[
        float | None,
        _limit(
            "Wall time of a cell with the tools it waits for.",
            f"{_DEFAULTS.ceiling:g}",
            "SECONDS",
        ),
    ] = None
    cpu_seconds: Annotated[
        float | None,
        _limit("Processor time of a cell.", f"{_DEFAULTS.cpu_seconds:g}", "SECONDS"),
    ] = None
    cores: Annotated[
        float | None, _limit("Share of the processor.", f"{_DEFAULTS.cores:g}", "NUMBER")
    ] = None
    memory: Annotated[
        str | None, _limit("Memory of the session.", size(_DEFAULTS.memory), "SIZE")
    ] = None
    processes: Annotated[
        int | None,
        _limit("Processes and threads at once.", f"{_DEFAULTS.processes}", "NUMBER"),
    ] = None
    open_files: Annotated[
        int | None, _limit("Open files of a process.", f"{_DEFAULTS.open_files}", "NUMBER")
    ] = None
    disk: Annotated[
        str | None, _limit("Files of the session together.", size(_DEFAULTS.disk), "SIZE")
    ] = None
    output: Annotated[
        str | None, _limit("Text of a cell that is shown.", size(_DEFAULTS.output), "SIZE")
    ] = None
    package: Annotated[
        tuple[str, ...],
        Parameter(
            help="A package besides those of the default profile (repeatable).",
            group=_SANDBOX,
            negative=(),
            metavar="NAME",
        ),
    ] = ()
    mount: Annotated[
        tuple[str, ...],
        Parameter(
            help="Show a folder of this machine read-only: /inside=./outside (repeatable).",
            group=_SANDBOX,
            negative=(),
            metavar="/INSIDE=OUTSIDE",
        ),
    ] = ()
    put: Annotated[
        tuple[Path, ...],
        Parameter(
            help="Copy a file to /workspace first (repeatable).",
            group=_FILES,
            negative=(),
            metavar="FILE",
        ),
    ] = ()
    plots: Annotated[
        Path,
        Parameter(
            help="The folder for plots, plot-1.png and so on [default: the current one].",
            group=_FILES,
            metavar="DIR",
        ),
    ] = Path()

    def settings(self) -> dict[str, Any]:
        limits = {item.name: getattr(self, item.name) for item in fields(Limits)}
        return {
            **super().settings(),
            **limits,
            "packages": self.package or None,
            "mounts": dict(map(_mount, self.mount)) or None,
            "pool": 0,  # there is one session: others that wait would only take its processor
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(SandboxOptions):
    """The options of `run` and `exec`."""

    get: Annotated[
        tuple[str, ...],
        Parameter(
            help="Copy a file from /workspace to the current folder afterwards (repeatable).",
            group=_FILES,
            negative=(),
            metavar="NAME",
        ),
    ] = ()
    json: Annotated[
        bool, Parameter(negative=(), help="Print the result as one JSON object, at the end.")
    ] = False


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError("the current folder was removed: go to another one") from None


def _mount(text: str) -> tuple[str, str]:
    inside, equals, outside = text.partition("=")
    if not equals or not outside:
        raise ConfigError(f"--mount {text}: write it as /inside=./outside")
    return inside, str(Path(outside).expanduser().absolute())
