"""The commands: their names, where they are, and what they say about themselves.

Plain data: `divingbell --help` prints it without loading what reads command lines and draws boxes,
which takes four times as long as all the rest.
"""

import shutil
import textwrap
from dataclasses import dataclass

from divingbell.surfaces.cli import exit_status

ABOUT = "Runs Python that agents wrote, in a sealed sandbox, with tools of MCP servers."
EXIT_STATUSES = "Exit statuses: see divingbell --help."
MOST_COLUMNS = 100
"""Longer lines are hard to read."""
STATUS_WIDTH = 3


@dataclass(frozen=True)
class Command:
    """A command, or a group of them."""

    name: str
    place: str
    """The module and the name in it, as in `commands:run`."""
    help: str
    """All that it says; its first line is in the list."""
    epilogue: str = ""


COMMANDS = (
    Command(
        "run",
        "commands:run",
        """Run a file in a fresh session, and show its output as it comes.

Options of divingbell stand before FILE. The script lies in /workspace.
It has no standard input: copy files in with --put.""",
        EXIT_STATUSES,
    ),
    Command(
        "exec",
        "commands:execute",
        "Run code in a fresh session, and show its output as it comes.",
        EXIT_STATUSES,
    ),
    Command(
        "shell",
        "commands:shell",
        "Open a prompt in a session: variables and files stay until you leave.",
    ),
    Command(
        "chat",
        "commands:chat",
        """Talk to a model that works for you in a session: about your files, with your tools.

It writes Python, which runs in a sealed sandbox, and you see all of it. Personal
data is replaced before the model reads it; what you see has the real values.""",
        EXIT_STATUSES,
    ),
    Command(
        "serve",
        "commands:serve",
        "Be an MCP server: in front of other MCP servers, over stdin and stdout or over HTTP.",
    ),
    Command(
        "node",
        "commands:node",
        """Hold sessions for programs that are elsewhere, and print the address.

With a Ray cluster nobody has to: each Ray node that offers the resource `divingbell`
has one. By hand it is for trying the line, on one machine.""",
    ),
    Command(
        "nodes",
        "nodes_commands:nodes",
        "List the nodes of a Ray cluster that hold sessions, and drain one.",
    ),
    Command(
        "servers",
        "commands:servers",
        "Connect to the MCP servers that are configured, and say how each of them is doing.",
    ),
    Command("import", "commands:take_over", "Take over the list of MCP servers of another client."),
    Command(
        "login",
        "commands:login",
        "Sign in at a remote MCP server that asks for it, with a browser.",
    ),
    Command("logout", "commands:logout", "Throw the tokens of a sign-in away."),
    Command(
        "doctor",
        "commands:doctor",
        "Say what this machine can do, what is in force, and what to do about what is missing.",
        EXIT_STATUSES,
    ),
    Command(
        "datasets",
        "datasets_commands:datasets",
        "Files of a folder as tables, for MCP clients: CSV, JSON lines, Parquet, Excel, SQLite.",
    ),
    Command(
        "image",
        "image_commands:image",
        "Make, list and clear up the root file system of containers.",
    ),
    Command(
        "profile",
        "profile_commands:profile",
        "List and clear up the environments that sandboxes see: Python and its packages.",
    ),
    Command(
        "policy",
        "policy_commands:policy",
        "Say what the rules of these settings do about calls of tools.",
    ),
    Command(
        "review",
        "commands:review",
        """Say what code would try to do, and what the settings say about that. Nothing is run.

It names processes, network, endless loops, huge values, files outside of
the workspace, and the tools that are called. It is advice: the walls hold without it.""",
        "Exit status: 1 if the code would be refused, a person would be asked, or it is no Python; "
        "0 if it would run, 2 for wrong usage or configuration.",
    ),
    Command("vault", "vault_commands:vault", "Say what is kept of that which models do not see."),
    Command(
        "token",
        "token_commands:token",
        "Make, list and revoke tokens for `divingbell serve --http`.",
    ),
    Command(
        "audit",
        "audit_commands:audit",
        "Read, verify and export the audit log: who ran and called what.",
    ),
    Command(
        "skills",
        "skill_commands:skills",
        "Look after skills: code that was found useful, kept and offered to code again.",
    ),
    Command(
        "trust",
        "commands:trust",
        "Show what a folder's divingbell.toml and mcp.json would do, and ask whether to use them.",
    ),
    Command(
        "stats",
        "commands:stats",
        "Show the tokens that models read, and those that they were spared.",
    ),
    Command(
        "demo",
        "commands:demo",
        "Show what it is for: tools called from code, a plot, blocked attacks, limits, timings.",
    ),
)
OPTIONS = {"--help, -h": "Show this.", "--version": "Show the version."}


def overview() -> str:
    """Return what `divingbell --help` says, for the terminal that there is."""
    commands = {each.name: each.help.partition("\n")[0] for each in COMMANDS}
    statuses = {
        f"{number:>{STATUS_WIDTH}}": meaning for number, meaning in exit_status.MEANINGS.items()
    }
    return "\n".join(
        [
            "Usage: divingbell COMMAND",
            "",
            _wrapped(ABOUT),
            "",
            "Commands:",
            *_listed(dict(sorted(commands.items())) | OPTIONS),
            "",
            "Exit status:",
            *_listed(statuses),
            "",
            _wrapped("divingbell COMMAND --help says more of each."),
        ]
    )


def _listed(lines: dict[str, str]) -> list[str]:
    """Return names with what they mean beside them."""
    width = max(map(len, lines))
    return [_wrapped(f"  {name:<{width}}  {text}", width + 4) for name, text in lines.items()]


def _wrapped(text: str, indent: int = 0) -> str:
    columns = min(shutil.get_terminal_size().columns, MOST_COLUMNS)
    width = max(columns, indent + 20)
    return textwrap.fill(text, width, subsequent_indent=" " * indent)
