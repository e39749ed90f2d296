"""`divingbell login` and `divingbell logout`: tokens for remote servers that ask for a sign-in."""

from divingbell.errors import ConfigError
from divingbell.host.login import login_name
from divingbell.principal import Principal
from divingbell.settings.config import Settings
from divingbell.settings.servers import Server, UnusableServer
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.recording import recorded


async def log_in(name: str, settings: Settings) -> int:
    """Sign in with a browser; the tokens are kept for the next start.

    Raises:
        ConfigError: there is no such server.
        ToolFailed: it did not work.
        NotRecorded: there is an audit log, and it can't be written: nobody is asked to sign in.
    """
    from divingbell.gateway.sign_in import oauth

    server, whose = _server(name, settings), Principal(login_name(), client="command")
    async with recorded(settings, first=True) as journal:
        needed = await oauth.login(server, print, principal=whose, journal=journal)
    print(f"signed in at {name}" if needed else f"{name} asks for no sign-in")
    return exit_status.OK


def log_out(name: str, settings: Settings) -> int:
    """Throw the tokens away."""
    from divingbell.gateway.sign_in.oauth import Credentials

    there = Credentials().forget(_server(name, settings))
    print(f"signed out of {name}" if there else f"there were no tokens for {name}")
    return exit_status.OK


def _server(name: str, settings: Settings) -> Server:
    entries = {entry.name: entry for entry in settings.servers}
    entry = entries.get(name)
    if entry is None:
        known = ", ".join(entries) or "none is configured"
        raise ConfigError(f"there is no server {name!r}; there is: {known}")
    if isinstance(entry, UnusableServer):
        raise ConfigError(entry.reason)
    return entry
