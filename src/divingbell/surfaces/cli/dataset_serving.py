"""`divingbell datasets serve`: the files of a folder as tables, for MCP clients."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.models import Limits
from divingbell.surfaces.cli import greeting, serving
from divingbell.surfaces.cli.serve_options import DatasetOptions
from divingbell.surfaces.cli.terminal.notes import tell

if TYPE_CHECKING:
    from divingbell.settings.config import Settings


async def serve(folder: Path, options: DatasetOptions, settings: "Settings") -> int:
    """Serve until the client leaves (stdio), or until told to end."""
    settings = replace(settings, limits=_limits(options, settings.limits))
    if options.http:
        return await _over_http(folder, options, settings)
    return await _over_stdio(folder, settings)


def _limits(options: DatasetOptions, found: Limits) -> Limits:
    """Return the limits of the sessions that read; those of settings are meant for other work."""
    from divingbell.datasets.sealed_reader import default_limits
    from divingbell.settings.config import with_limits

    limits = default_limits() if found == Limits() else found
    given = {"memory": options.memory, "disk": options.disk, "timeout": options.timeout}
    return with_limits(limits, {name: value for name, value in given.items() if value is not None})


async def _over_stdio(folder: Path, settings: "Settings") -> int:
    from divingbell.datasets.opening import given_spool, opened
    from divingbell.surfaces.mcp import stdio

    async with opened(folder, settings, spool=given_spool(), progress=tell) as (made, bell):
        if greeting.was_typed():
            tell("This is an MCP server for the datasets of a folder: a client starts it.")
            tell("Ctrl-C ends it. For many clients: --http")
        serving.settle()
        return await serving.watched(bell, stdio.run(made.server), stay=True)


async def _over_http(folder: Path, options: DatasetOptions, settings: "Settings") -> int:
    from divingbell.datasets.opening import opened
    from divingbell.surfaces.http import listening
    from divingbell.surfaces.http.application import application_of

    known, new = serving.tokens_for(options)
    certificate = serving.certificate_for(options)
    hosts = (*options.allow_host, *(() if listening.is_loopback(options.host) else (options.host,)))
    with listening.bound(options.host, options.port) as listener:
        async with opened(folder, settings, progress=tell) as (made, bell):
            serving.settle()
            app = application_of(made.server, known, hosts)
            greet = partial(
                greeting.at_address_of_datasets,
                serving.url_of(options, listener.getsockname()[1]),
                guarded=known is not None,
                made=new,
            )
            answering = listening.serve(app, listener, greet, certificate)
            return await serving.watched(bell, answering, stay=False)
