"""`divingbell login` and `divingbell logout`: tokens for remote servers that ask for a sign-in."""

from divingbell import config
from divingbell.errors import ConfigError
from divingbell.gateway.servers import Broken, Server
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.options import HostOptions


async def log_in(name: str, options: HostOptions) -> int:
    """Sign in with a browser; the tokens are kept for the next start.

    Raises:
        ConfigError: there is no such server.
        ToolFailed: it did not work.
    """
    from divingbell.gateway import oauth

    options.start_log()
    needed = await oauth.login(_server(name, options), print)
    print(f"signed in at {name}" if needed else f"{name} asks for no sign-in")
    return exit_status.OK


def log_out(name: str, options: HostOptions) -> int:
    """Throw the tokens away."""
    from divingbell.gateway.oauth import Credentials

    there = Credentials().forget(_server(name, options))
    print(f"signed out of {name}" if there else f"there were no tokens for {name}")
    return exit_status.OK


def _server(name: str, options: HostOptions) -> Server:
    given = {key: value for key, value in options.settings().items() if key != "config"}
    entries = {entry.name: entry for entry in config.load(options.config, given).servers}
    entry = entries.get(name)
    if entry is None:
        known = ", ".join(entries) or "none is configured"
        raise ConfigError(f"there is no server {name!r}; there is: {known}")
    if isinstance(entry, Broken):
        raise ConfigError(entry.reason)
    return entry
