"""The options of `serve`. What takes long to load is not for them: every command reads them."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from divingbell.surfaces.cli.options import HostOptions, PrivacyOptions, privacy_help
from divingbell.surfaces.cli.terminal.notes import NOTE

HOST, PORT = "127.0.0.1", 8642
_HTTP = Group("HTTP", sort_key=5)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class HttpOptions(HostOptions):
    """The options of what serves over stdin and stdout, or over HTTP."""

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
    tls_cert: Annotated[
        Path | None,
        Parameter(
            group=_HTTP,
            help="Serve over TLS with this certificate (PEM, with those that vouch for it). A "
            "renewed one is taken up.",
            metavar="FILE",
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        Parameter(
            group=_HTTP,
            help="Its private key, if that is in a file of its own.",
            metavar="FILE",
        ),
    ] = None

    def start_log(self) -> None:
        """Show warnings in any case: this runs unattended."""
        super().start_log()
        if not self.verbose:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(NOTE + "%(message)s"))
            logger = logging.getLogger("divingbell")
            logger.addHandler(handler)
            logger.setLevel(logging.WARNING)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions(HttpOptions, PrivacyOptions):
    """The options of `serve`."""

    mode: Annotated[
        str | None,
        Parameter(
            help="code; hybrid, which also passes chosen tools through; or direct, which passes "
            "all through and runs no code [default: code]."
        ),
    ] = None
    privacy: Annotated[str | None, privacy_help("secrets")] = None

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "mode": self.mode}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DatasetOptions(HttpOptions):
    """The options of `datasets serve`."""

    memory: Annotated[
        str | None, Parameter(help="Memory of the session that answers one request [default: 1GB].")
    ] = None
    disk: Annotated[
        str | None, Parameter(help="Size of what it may write, its result too [default: 512MB].")
    ] = None
    timeout: Annotated[
        float | None, Parameter(help="Seconds that one request may take [default: 300].")
    ] = None
