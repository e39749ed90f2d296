"""`divingbell serve`: Divingbell as an MCP server."""

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from divingbell.errors import ConfigError, DivingbellError
from divingbell.models import KB, Limits
from divingbell.shares import loop_thread
from divingbell.surfaces.cli import exit_status, greeting
from divingbell.surfaces.cli.serve_options import HttpOptions, ServeOptions
from divingbell.surfaces.cli.terminal.notes import tell
from divingbell.text import uncovered

if TYPE_CHECKING:
    from divingbell.app import Divingbell
    from divingbell.settings.config import Settings
    from divingbell.surfaces.auth import Tokens
    from divingbell.surfaces.cli.terminal.signals import Signals
    from divingbell.surfaces.http.certificate import Certificate

EVERYWHERE = ("0.0.0.0", "::")
OUTPUT = 64 * KB
"""Bytes of a cell's output that a model reads; the rest is kept in /workspace/.outputs/."""


async def serve(
    options: ServeOptions, settings: "Settings", caught: "Signals | None" = None
) -> int:
    """Serve until the client leaves (stdio), or until told to end."""
    settings = for_a_model(settings)
    with exporting(settings):
        if options.http:
            settings = replace(settings, metrics=settings.metrics or "on")
            return await _over_http(options, settings, caught)
        return await _over_stdio(options, settings)


@contextmanager
def exporting(settings: "Settings") -> Iterator[None]:
    """Send traces to their collector, where the settings want some.

    Raises:
        ConfigError: what sends them is not installed.
    """
    if settings.traces == "off":
        yield
        return
    from divingbell.surfaces import traced_requests

    try:
        end = traced_requests.exported()
    except ImportError as error:
        raise ConfigError(
            f"traces can't be sent ({error}): run pip install 'divingbell[traces]', or set "
            'traces = "off"'
        ) from None
    try:
        yield
    finally:
        end()


def settle() -> None:
    """Once all is loaded: have this process answer soon, whatever else its threads do."""
    gc.freeze()  # else each large message has all that is loaded looked through: 70 ms
    loop_thread.hand_over_soon()


async def _over_stdio(options: ServeOptions, settings: "Settings") -> int:
    from divingbell.app import Divingbell

    typed = greeting.was_typed()
    async with Divingbell.of(settings, progress=tell).starting() as bell:
        # Loading the SDK takes a second, in which the sandbox starts.
        stdio = await asyncio.to_thread(import_module, "divingbell.surfaces.mcp.stdio")
        if typed:
            greeting.at_stdin(options, settings)
        greeting.tell_of_privacy(settings)
        settle()
        # The process is the client's own: a model can still be told why there is no sandbox.
        return await watched(bell, stdio.serve(bell), stay=not typed)


async def _over_http(options: ServeOptions, settings: "Settings", caught: "Signals | None") -> int:
    from divingbell.app import Divingbell
    from divingbell.surfaces.http import listening
    from divingbell.surfaces.http.application import application
    from divingbell.surfaces.traced_requests import TracedRequests

    known, made = tokens_for(options)
    settings = with_private_users(settings, known)
    certificate = certificate_for(options)
    local = listening.is_loopback(options.host)
    listener = listening.bound(options.host, options.port)
    with listener:
        async with Divingbell.of(settings, progress=tell).starting() as bell:
            settle()
            hosts = (*options.allow_host, *(() if local else (options.host,)))
            app = application(bell, known, hosts)
            if settings.traces == "on":
                app.put_within(TracedRequests)
            greet = partial(
                greeting.at_address,
                url_of(options, listener.getsockname()[1]),
                guarded=known is not None,
                made=made,
                settings=settings,
            )
            serving = asyncio.create_task(listening.serve(app, listener, greet, certificate))
            if caught is not None:
                caught.on_second = serving.cancel
            return await watched(bell, serving, stay=False)


async def watched(bell: "Divingbell", serving: Awaitable[None], *, stay: bool) -> int:
    """Serve while the sandbox starts, and then on; return the exit status.

    If the sandbox can't be started, those who wait for it are told, and this ends. With `stay` it
    goes on instead, to tell others as well. Wrong settings end it in any case.
    """
    answering, started = asyncio.ensure_future(serving), asyncio.create_task(bell.ready())
    try:
        await asyncio.wait((answering, started), return_when=asyncio.FIRST_COMPLETED)
        error = started.exception() if started.done() else None
        if error is None:
            if started.done() and os.isatty(sys.stderr.fileno()):
                tell("The sandbox is up.")
            await answering
            return exit_status.OK
        if not stay or not _is_of_the_machine(error):
            raise error
        tell(f"no code can be run: {uncovered(str(error))}")
        await answering
        return exit_status.UNAVAILABLE
    finally:
        started.cancel()
        answering.cancel()
        await asyncio.wait((answering, started))


def _is_of_the_machine(error: BaseException) -> bool:
    if not isinstance(error, DivingbellError):
        return False
    return exit_status.of_error(error) == exit_status.UNAVAILABLE


def tokens_for(options: HttpOptions) -> "tuple[Tokens | None, str | None]":
    """Return the tokens that let in, None for none; and one that was made for this run.

    Raises:
        ConfigError: the options can't be meant.
    """
    from divingbell.surfaces import auth
    from divingbell.surfaces.cli.tokens import store
    from divingbell.surfaces.http.listening import is_loopback

    kept = store()
    known = auth.load(options.token_file, options.token, store=kept)
    local = is_loopback(options.host)
    if options.no_token:
        if known is not None:
            raise ConfigError(
                "--no-token and tokens exclude each other: leave it out, or the tokens. They are "
                f"those of --token, --token-file and {auth.VARIABLE}, and those that "
                "`divingbell token list` names, which `divingbell token revoke ID` removes"
            )
        if not local:
            raise ConfigError("--no-token needs a loopback address: others could reach this one")
    elif known is None:
        if not local:
            raise ConfigError(
                f"{options.host} can be reached from elsewhere, and there are no tokens: "
                f"give --token-file, or set {auth.VARIABLE}"
            )
        return auth.made(kept)
    return known, None


def with_private_users(settings: "Settings", tokens: "Tokens | None") -> "Settings":
    """Return settings by which those have "personal" whose tokens say so."""
    rules = settings.privacy_rules
    private = frozenset() if tokens is None else tokens.private_users()
    users = (*rules.users, *sorted(private - frozenset(rules.users)))
    return replace(settings, privacy_rules=replace(rules, users=users))


def url_of(options: HttpOptions, port: int) -> str:
    """Return the address for clients. What means "everywhere" to a listener is none."""
    host = options.host
    if host.strip("[]") in EVERYWHERE:
        host = options.allow_host[0] if options.allow_host else "localhost"
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    scheme = "http" if options.tls_cert is None else "https"
    return f"{scheme}://{name}:{port}/mcp"


def certificate_for(options: HttpOptions) -> "Certificate | None":
    """Return the certificate that clients are to be shown.

    Raises:
        ConfigError: it can't be used.
    """
    from divingbell.surfaces.http.certificate import Certificate

    if options.tls_cert is not None:
        return Certificate(options.tls_cert, options.tls_key)
    if options.tls_key is not None:
        raise ConfigError("--tls-key is the key of a certificate: give --tls-cert, too")
    return None


def for_a_model(settings: "Settings") -> "Settings":
    """Return the settings for what a model reads, where nothing else was chosen: less output of a
    cell, no secrets in it, a record of what is called, and skills."""
    if settings.limits.output == Limits().output:
        settings = replace(settings, limits=replace(settings.limits, output=OUTPUT))
    return replace(
        settings,
        privacy=settings.privacy or "secrets",
        audit=settings.audit or "on",
        skills=settings.skills or "on",
    )
