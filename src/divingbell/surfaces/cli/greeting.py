"""The greeting of `serve`, on stderr: short for clients' log files, longer for a person."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divingbell.amounts import amount
from divingbell.escapes import one_line
from divingbell.settings.sources import FILE_NAME, MCP_FILE_NAME
from divingbell.surfaces.cli.terminal.notes import tell

if TYPE_CHECKING:
    from divingbell.settings.config import Settings
    from divingbell.surfaces.cli.serve_options import ServeOptions

_STDIN, _STDERR = 0, 2


def was_typed() -> bool:
    """Whether a person has started it by hand: a client would have a pipe at its stdin."""
    return os.isatty(_STDIN)


def at_stdin(options: "ServeOptions", settings: "Settings") -> None:
    """Say what this is to a person who has typed the command."""
    tell("This is an MCP server: a client starts it, and speaks to it over stdin and stdout.")
    tell("It now waits for a client's messages from this terminal, which hardly anybody types.")
    tell("Ctrl-C ends it. A prompt for people: divingbell shell. For many clients: --http")
    entry = _command(options, settings)
    words = shlex.join([entry["command"], *entry["args"]])
    tell(f"Claude Code: claude mcp add divingbell -- {words}")
    tell("In other clients' lists:")
    _show(entry)
    _tell_of_servers(settings)


def at_address(url: str, *, guarded: bool, made: str | None, settings: "Settings") -> None:
    """Say where it listens, and how a client is let in."""
    _show_address(url, "divingbell", guarded=guarded, made=made)
    # Behind the # a browser sends it to nobody; the page takes it out of the address at once.
    token = f"#token={made}" if made else ""
    tell(f"the console, for a browser: {url.removesuffix('/mcp')}/{token}")
    tell_of_privacy(settings)
    if os.isatty(_STDERR):
        _tell_of_tokens(guarded=guarded, made=made)
        _tell_of_servers(settings)


def at_address_of_datasets(url: str, *, guarded: bool, made: str | None) -> None:
    """Say where a dataset server listens, and how a client is let in."""
    _show_address(url, "datasets", guarded=guarded, made=made)
    if os.isatty(_STDERR):
        _tell_of_tokens(guarded=guarded, made=made)


def _tell_of_tokens(*, guarded: bool, made: str | None) -> None:
    if made is not None:
        tell("The token is for this run. Others stay: --token-file FILE, a line `name token` each.")
    elif guarded:
        tell("Write one of the tokens that you have given it in place of YOUR-TOKEN.")
    else:
        tell("Every program on this machine is let in: --no-token says so.")
    tell("Ctrl-C ends it.")


def _show_address(url: str, name: str, *, guarded: bool, made: str | None) -> None:
    entry: dict[str, Any] = {"type": "http", "url": url}
    if guarded:
        entry["headers"] = {"Authorization": f"Bearer {made or 'YOUR-TOKEN'}"}
    tell(f"listening at {url}; in a client's list of servers:")
    _show(entry, name)


def tell_of_privacy(settings: "Settings") -> None:
    """Say what models see of secrets and personal data, as long as it is more than nothing."""
    if settings.privacy == "secrets":
        tell(
            "Secrets are kept from models. Personal data is not replaced: --private "
            '(privacy = "personal") keeps it from them, too.'
        )
    elif settings.privacy != "personal":
        tell(
            "Nothing is kept from models, neither secrets nor personal data: "
            '--private (privacy = "personal") or --privacy secrets does.'
        )
    if settings.privacy != "personal" and settings.privacy_rules.users:
        users = ", ".join(map(one_line, settings.privacy_rules.users))
        tell(
            "For these users both are kept from them, as [privacy_rules] or the scope private of "
            f"their tokens says: {users}."
        )


def _command(options: "ServeOptions", settings: "Settings") -> dict[str, Any]:
    """Return the entry that starts the same from any folder."""
    program, arguments = Path(sys.argv[0]).absolute(), ["serve"]
    if program.name == "__main__.py":  # python -m divingbell
        program, arguments = Path(sys.executable), ["-m", "divingbell", "serve"]
    privacy = options.chosen_privacy()
    given = (("mode", options.mode), ("backend", options.backend), ("privacy", privacy))
    for name, value in given:
        arguments += [f"--{name}", value] if value else []
    for name, path in _files(options, settings).items():
        arguments += [f"--{name}", str(Path(path).absolute())] if path else []
    return {"command": str(program), "args": arguments}


def _files(options: "ServeOptions", settings: "Settings") -> dict[str, Path | str | None]:
    """Return the files that this one reads: a client has other variables, and starts in another
    folder."""
    config = options.config or os.environ.get("DIVINGBELL_CONFIG")
    mcp_config = options.mcp_config or os.environ.get("DIVINGBELL_MCP_CONFIG")
    if not config and Path(FILE_NAME).exists():
        config = FILE_NAME
        if not settings.mcp_config and Path(MCP_FILE_NAME).exists():
            mcp_config = MCP_FILE_NAME  # beside settings that are named it is not looked for
    return {"config": config, "mcp-config": mcp_config}


def _show(entry: dict[str, Any], name: str = "divingbell") -> None:
    print(json.dumps({"mcpServers": {name: entry}}, indent=2), file=sys.stderr, flush=True)


def _tell_of_servers(settings: "Settings") -> None:
    count = len(settings.servers)
    if count:
        tell(f"It uses {amount(count, 'MCP server')}. How they are doing: divingbell servers")
    else:
        tell("It has no MCP servers yet. `divingbell import` takes the list of a client over.")
