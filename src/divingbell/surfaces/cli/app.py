"""The command line as it is read: the commands of the table, each loaded when it is run.

With all their options they take longer to load than `--help` takes to print.
"""

from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError

from divingbell.errors import InvalidInput
from divingbell.surfaces.cli.arguments import parted
from divingbell.surfaces.cli.command_table import ABOUT, COMMANDS

_HERE = "divingbell.surfaces.cli"
_AVAILABLE = " Available commands: "


def _version() -> str:
    from importlib.metadata import version

    return version("divingbell")


app = App(
    name="divingbell",
    help=ABOUT,
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
    version=_version,
    version_format="plaintext",
    exit_on_error=False,
    print_error=False,
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for _command in COMMANDS:
    _more = {"help_epilogue": _command.epilogue} if _command.epilogue else {}  # groups take none
    app.command(f"{_HERE}.{_command.place}", name=_command.name, help=_command.help, **_more)


def call(arguments: Sequence[str]) -> object:
    """Do what a command line says; return what the command returns.

    Raises:
        InvalidInput: it can't be understood.
    """
    try:
        return app(parted(arguments))
    except CycloptsError as error:
        raise InvalidInput(_words(error)) from None


def _words(error: CycloptsError) -> str:
    said = f"{error}".strip()
    if not isinstance(error, UnknownCommandError) or error.app is None:
        return said
    # It names eight commands of those that there are.
    names = ", ".join(name for name in error.app if not name.startswith("-"))
    return f"{said.partition(_AVAILABLE)[0]}{_AVAILABLE}{names}."
