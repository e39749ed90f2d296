"""The command line: which commands there are, and what they say about themselves.

Each is named by its place and loaded when it is run: with all their options they take longer to
load than `--help` takes to print.
"""

import contextlib
import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError

from divingbell import logs
from divingbell.errors import DivingbellError
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.arguments import parted

log = logs.logger("divingbell")

_HERE = "divingbell.surfaces.cli"
_EPILOGUE = "Exit status:\n" + "\n".join(
    f"  {number:>3}  {meaning}" for number, meaning in exit_status.MEANINGS.items()
)


def _version() -> str:
    from importlib.metadata import version

    return version("divingbell")


_STATUSES_ELSEWHERE = "Exit statuses: see divingbell --help."

app = App(
    name="divingbell",
    help="Runs Python that agents wrote, in a sealed sandbox, with tools of MCP servers.",
    help_format="plaintext",
    help_epilogue=_EPILOGUE,
    default_parameter=Parameter(show_default=False),
    version=_version,
    version_format="plaintext",
    exit_on_error=False,
    print_error=False,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


def _command(name: str, function: str, help: str, epilogue: str = "") -> None:
    """Add a command of `commands`. `help` is all that it says; its first line is in the list."""
    app.command(f"{_HERE}.commands:{function}", name=name, help=help, help_epilogue=epilogue)


def _group(name: str, help: str, module: str = "") -> None:
    """Add a group of commands: the `App` of that name in a module of its own."""
    place = module or f"{name}_commands"
    app.command(f"{_HERE}.{place}:{name}", name=name, help=help)


_command(
    "run",
    "run",
    """Run a file in a fresh session, and show its output as it comes.

Options of divingbell stand before FILE. The script lies in /workspace.
It has no standard input: copy files in with --put.""",
    _STATUSES_ELSEWHERE,
)
_command(
    "exec",
    "execute",
    "Run code in a fresh session, and show its output as it comes.",
    _STATUSES_ELSEWHERE,
)
_command("shell", "shell", "Open a prompt in a session: variables and files stay until you leave.")
_command(
    "chat",
    "chat",
    """Talk to a model that works for you in a session: about your files, with your tools.

It writes Python, which runs in a sealed sandbox, and you see all of it. Personal
data is replaced before the model reads it; what you see has the real values.""",
    _STATUSES_ELSEWHERE,
)
_command(
    "serve",
    "serve",
    "Be an MCP server: in front of other MCP servers, over stdin and stdout or over HTTP.",
)
_command(
    "servers",
    "servers",
    "Connect to the MCP servers that are configured, and say how each of them is doing.",
)
_command("import", "take_over", "Take over the list of MCP servers of another client.")
_command("login", "login", "Sign in at a remote MCP server that asks for it, with a browser.")
_command("logout", "logout", "Throw the tokens of a sign-in away.")
_command(
    "doctor",
    "doctor",
    "Say what this machine can do, what is in force, and what to do about what is missing.",
    _STATUSES_ELSEWHERE,
)
_group(
    "datasets",
    "Files of a folder as tables, for MCP clients: CSV, JSON lines, Parquet, Excel, SQLite.",
)
_group("image", "Make, list and clear up the root file system of containers.")
_group("profile", "List and clear up the environments that sandboxes see: Python and its packages.")
_group("policy", "Say what the rules of these settings do about calls of tools.")
_command(
    "review",
    "review",
    """Say what code would try to do, and what the settings say about that. Nothing is run.

It names processes, network, endless loops, huge values, files outside of
the workspace, and the tools that are called. It is advice: the walls hold without it.""",
    "Exit status: 1 if the code would be refused, a person would be asked, or it is no Python; "
    "0 if it would run, 2 for wrong usage or configuration.",
)
_group("vault", "Say what is kept of that which models do not see.")
_group(
    "token",
    "Make, list and revoke tokens for `divingbell serve --http`.",
)
_group("audit", "Read, verify and export the audit log: who ran and called what.")
_group(
    "skills",
    "Look after skills: code that was found useful, kept and offered to code again.",
    "skill_commands",
)
_command(
    "trust",
    "trust",
    "Show what a folder's divingbell.toml and mcp.json would do, and ask whether to use them.",
)
_command("stats", "stats", "Show the tokens that models read, and those that they were spared.")
_command(
    "demo",
    "demo",
    "Show what it is for: tools called from code, a plot, blocked attacks, limits, timings.",
)


_AVAILABLE = " Available commands: "


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, as listed in `exit_status`."""
    _mend_streams()
    logs.screen_by(_blotted)
    try:
        status = app(parted(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return status if isinstance(status, int) else exit_status.OK
    except CycloptsError as error:
        return _fail(_words(error), exit_status.USAGE)
    except DivingbellError as error:
        log.debug("the traceback:", exc_info=error)
        return _fail(str(error), exit_status.of_error(error))
    except KeyboardInterrupt:
        return exit_status.INTERRUPTED
    except BrokenPipeError:
        # What is still in the buffers has nowhere to go.
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return exit_status.BROKEN_PIPE
    except OSError as error:  # a full disk, most likely: files of the user's are read elsewhere
        log.debug("the traceback:", exc_info=error)
        return _fail(f"the output can't be written: {error.strerror}", exit_status.FAILED)


def _words(error: CycloptsError) -> str:
    said = f"{error}".strip()
    if not isinstance(error, UnknownCommandError) or error.app is None:
        return said
    # It names eight commands of those that there are.
    names = ", ".join(name for name in error.app if not name.startswith("-"))
    return f"{said.partition(_AVAILABLE)[0]}{_AVAILABLE}{names}."


def _mend_streams() -> None:
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # Closed by the caller (`2>&-`). The next file that is opened would take its place,
            # and what is meant for people would be written to the line of a sandbox.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A file name that is not valid text, or a narrow locale, is no reason to fail.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _fail(message: str, status: int) -> int:
    from divingbell.text import uncovered

    with contextlib.suppress(OSError):
        print(f"divingbell: {uncovered(message)}", file=sys.stderr, flush=True)
    return status


def _blotted(words: str) -> str:
    """Take personal data out of what is logged. What finds it is loaded with the first line."""
    from divingbell.border.privacy.blotter import BLOTTER

    return BLOTTER.blotted(words)
