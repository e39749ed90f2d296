"""`divingbell serve`: Divingbell as an MCP server."""

import gc
import json
import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from divingbell.errors import ConfigError
from divingbell.models import KB, Limits
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.options import HostOptions

if TYPE_CHECKING:
    from divingbell.config import Settings

# The options are read by every command: what takes long to load is imported where it is used.

NOTE = "· "
OUTPUT = 64 * KB
"""What a model reads of one cell; the rest is kept in /workspace/.outputs/."""
HOST, PORT = "127.0.0.1", 8642
_HTTP = Group("HTTP", sort_key=5)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions(HostOptions):
    """What `serve` understands."""

    mode: Annotated[
        str | None,
        Parameter(help="code, or hybrid, which also passes chosen tools through [default: code]."),
    ] = None
    http: Annotated[
        bool, Parameter(negative=(), group=_HTTP, help="Serve over HTTP instead of stdin/stdout.")
    ] = False
    host: Annotated[str, Parameter(group=_HTTP, help=f"Where to listen [default: {HOST}].")] = HOST
    port: Annotated[
        int, Parameter(group=_HTTP, help=f"At which port; 0 takes a free one [default: {PORT}].")
    ] = PORT
    token_file: Annotated[
        Path | None,
        Parameter(
            group=_HTTP,
            help="Who may call: lines of `name token` or `name sha256:…`.",
            metavar="FILE",
        ),
    ] = None
    token: Annotated[
        tuple[str, ...],
        Parameter(
            group=_HTTP,
            negative=(),
            help="One who may call (repeatable). Others on this machine can read it here; "
            "a file or DIVINGBELL_TOKENS is better.",
            metavar="NAME=TOKEN",
        ),
    ] = ()
    no_token: Annotated[
        bool,
        Parameter(
            negative=(),
            group=_HTTP,
            help="Let every program on this machine call; only with a loopback --host.",
        ),
    ] = False
    allow_host: Annotated[
        tuple[str, ...],
        Parameter(
            group=_HTTP,
            negative=(),
            help="A name under which clients reach it, behind a proxy for instance (repeatable).",
            metavar="NAME",
        ),
    ] = ()

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "mode": self.mode}

    def start_log(self) -> None:
        """Warnings are told in any case: this runs unattended."""
        super().start_log()
        if not self.verbose:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(NOTE + "%(message)s"))
            logger = logging.getLogger("divingbell")
            logger.addHandler(handler)
            logger.setLevel(logging.WARNING)


async def serve(options: ServeOptions, settings: "Settings") -> int:
    """Serve until the client leaves (stdio), or until told to end."""
    settings = _for_a_model(settings)
    if options.http:
        await _over_http(options, settings)
    else:
        from divingbell.app import Divingbell
        from divingbell.surfaces.mcp import stdio

        async with Divingbell.of(settings, progress=_tell) as bell:
            gc.freeze()  # as below
            await stdio.serve(bell)
    return exit_status.OK


async def _over_http(options: ServeOptions, settings: "Settings") -> None:
    from divingbell.app import Divingbell
    from divingbell.surfaces.mcp import http, tokens

    known = tokens.load(options.token_file, options.token)
    made: str | None = None
    local = http.is_loopback(options.host)
    if options.no_token:
        if known is not None:
            raise ConfigError("--no-token, and tokens are given: which is meant?")
        if not local:
            raise ConfigError("--no-token needs a loopback address: others could reach this one")
    elif known is None:
        if not local:
            raise ConfigError(
                f"{options.host} can be reached from elsewhere, and there are no tokens: "
                f"give --token-file, or set {tokens.VARIABLE}"
            )
        known, made = tokens.made()
    listener = http.bound(options.host, options.port)
    with listener:
        async with Divingbell.of(settings, progress=_tell) as bell:
            gc.freeze()  # else each large message has all that is loaded looked through: 70 ms
            hosts = (*options.allow_host, *(() if local else (options.host,)))
            app = http.application(bell, known, hosts)
            port = listener.getsockname()[1]
            await http.serve(app, listener, _greeting(options.host, port, known is not None, made))


def _for_a_model(settings: "Settings") -> "Settings":
    """The settings, with less output of a cell unless one was chosen: a model reads all of it."""
    limits = settings.limits
    if limits.output != Limits().output:
        return settings
    return replace(settings, limits=replace(limits, output=OUTPUT))


def _greeting(host: str, port: int, guarded: bool, made: str | None) -> Callable[[], None]:
    def greet() -> None:
        name = f"[{host}]" if ":" in host and not host.startswith("[") else host
        entry: dict[str, Any] = {"type": "http", "url": f"http://{name}:{port}/mcp"}
        if guarded:
            entry["headers"] = {"Authorization": f"Bearer {made or 'YOUR-TOKEN'}"}
        _tell(f"listening at {entry['url']}; in a client's list of servers:")
        print(json.dumps({"mcpServers": {"divingbell": entry}}, indent=2), file=sys.stderr)
        sys.stderr.flush()

    return greet


def _tell(line: str) -> None:
    print(NOTE + line, file=sys.stderr, flush=True)
