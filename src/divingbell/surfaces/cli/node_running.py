"""`divingbell node`: a node that is run by hand."""

import asyncio
import contextlib
import os
import secrets
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.errors import ConfigError, DivingbellError
from divingbell.host import private_file
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.notes import tell

if TYPE_CHECKING:
    from divingbell.settings.config import Settings

VARIABLE = "DIVINGBELL_NODE_SECRET"
LEAST_SECRET, MOST_SECRET = 32, 1024
"""Characters."""


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options of a node that is run by hand."""

    name: str | None
    host: str
    port: int
    secret: str
    backend: str | None


def secret_of(file: Path | None) -> str:
    """Return the secret of the node; a file that is not there is made, for its owner alone.

    Raises:
        ConfigError: there is none, or the file can't be used.
    """
    if file is None:
        secret = os.environ.pop(VARIABLE, "")  # no process that is started here inherits it
        if not secret:
            raise ConfigError(
                f"a node needs a secret, which programs must know to use it: give --secret-file "
                f"FILE, which is made if it is not there, or set {VARIABLE}"
            )
    else:
        try:
            with contextlib.suppress(FileExistsError):
                private_file.write(file, f"{secrets.token_hex(32)}\n".encode(), replace=False)
            found = private_file.read(file, MOST_SECRET)
        except OSError as error:
            raise ConfigError(f"{file} can't be used: {error.strerror}") from None
        if found is None:
            raise ConfigError(
                f"{file} is no file of yours with a secret in it: remove it, and a new one is made"
            )
        secret = found.decode("utf-8", "replace").strip()
    if not LEAST_SECRET <= len(secret) <= MOST_SECRET:
        raise ConfigError(f"the secret of a node has at least {LEAST_SECRET} characters")
    return secret


async def hold(options: NodeOptions, settings: "Settings") -> int:
    """Run a node until told to end."""
    from divingbell.scale import certificates
    from divingbell.scale.node import Node

    name = options.name or f"{socket.gethostname()}-{os.getpid()}"
    if options.backend is not None:
        settings = replace(settings, node_backend=options.backend)
    contexts = certificates.contexts()
    node = Node(
        settings,
        name,
        host=options.host,
        port=options.port,
        tls=None if contexts is None else contexts.server,
        secret=options.secret,
        progress=tell,
    )
    try:
        address = await node.start()
    except OSError as error:
        raise DivingbellError(
            f"{options.host}:{options.port} can't be listened at: {error.strerror or error}"
        ) from None
    try:
        print(f"{address.name} {address.host}:{address.port}", flush=True)
        await asyncio.Event().wait()
    finally:
        await node.stop()
    return exit_status.OK
