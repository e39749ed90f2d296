"""The commands and their options. What they do is in the module of that name."""

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter, UnknownCommandError

from divingbell import logs
from divingbell.border.privacy.blotter import BLOTTER
from divingbell.errors import DivingbellError
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.arguments import parted
from divingbell.surfaces.cli.audit_options import AuditFilter
from divingbell.surfaces.cli.options import HostOptions, RunOptions, SandboxOptions
from divingbell.surfaces.cli.serve_options import ServeOptions
from divingbell.surfaces.cli.skill_commands import skills
from divingbell.text import uncovered

# asyncio, rich and prompt_toolkit take longer to load than `--help` takes to print:
# the modules that use them are imported by the commands that need them.

log = logs.logger("divingbell")

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


@app.command(help_epilogue=_STATUSES_ELSEWHERE)
def run(
    file: Annotated[str, Parameter(help="The file with the code; - for stdin.")],
    /,
    *arguments: Annotated[
        str, Parameter(help="Arguments for the script: all that stands after FILE.")
    ],
    options: RunOptions = RunOptions(),  # noqa: B008 (it is frozen)
) -> int:
    """Run a file in a fresh session, and show its output as it comes.

    Options of divingbell stand before FILE. The script lies in /workspace.
    It has no standard input: copy files in with --put.
    """
    from divingbell.surfaces.cli import running
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    script = running.read_script(file, arguments)
    return signals.run(lambda caught: running.run_once(script, options, settings, caught))


@app.command(name="exec", help_epilogue=_STATUSES_ELSEWHERE)
def execute(
    code: Annotated[str, Parameter(help="Python code.")],
    /,
    *,
    options: RunOptions = RunOptions(),  # noqa: B008
) -> int:
    """Run code in a fresh session, and show its output as it comes."""
    from divingbell.surfaces.cli import running
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    script = running.Script(code, ("-c",))
    return signals.run(lambda caught: running.run_once(script, options, settings, caught))


@app.command(help_epilogue="")
def shell(*, options: SandboxOptions = SandboxOptions()) -> int:  # noqa: B008
    """Open a prompt in a session: variables and files stay until you leave."""
    from divingbell.surfaces.cli.shell import converse
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda caught: converse(options, settings, caught))


@app.command(help_epilogue="")
def serve(*, options: ServeOptions = ServeOptions()) -> int:  # noqa: B008
    """Be an MCP server: in front of other MCP servers, over stdin and stdout or over HTTP."""
    from divingbell.surfaces.cli import serving
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: serving.serve(options, settings))


@app.command(help_epilogue="")
def servers(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Connect to the MCP servers that are configured, and say how each of them is doing."""
    from divingbell.surfaces.cli.servers import report
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: report(settings, as_json=json))


@app.command(name="import", help_epilogue="")
def take_over(
    source: Annotated[
        str,
        Parameter(help="claude, cursor or vscode; or the path of an mcp.json.", metavar="WHERE"),
    ],
    /,
    *,
    to: Annotated[
        Path | None,
        Parameter(
            help="The list to add to [default: mcp.json beside divingbell.toml, "
            "or in ~/.config/divingbell].",
            metavar="FILE",
        ),
    ] = None,
    dry_run: Annotated[bool, Parameter(negative=(), help="Only say what would be done.")] = False,
) -> int:
    """Take over the list of MCP servers of another client."""
    from divingbell.surfaces.cli import importing

    importing.take_over(source, to=to, dry_run=dry_run)
    return exit_status.OK


@app.command(help_epilogue="")
def login(
    server: Annotated[str, Parameter(help="The name of the server.")],
    /,
    *,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Sign in at a remote MCP server that asks for it, with a browser."""
    from divingbell.surfaces.cli.signing_in import log_in
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: log_in(server, settings))


@app.command(help_epilogue="")
def logout(
    server: Annotated[str, Parameter(help="The name of the server.")],
    /,
    *,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Throw the tokens of a sign-in away."""
    from divingbell.surfaces.cli.signing_in import log_out

    return log_out(server, options.load())


@app.command(help_epilogue=_STATUSES_ELSEWHERE)
def doctor(
    *,
    check: Annotated[
        bool, Parameter(negative=(), help="Attack a session, to see that each promise holds.")
    ] = False,
    only: Annotated[
        tuple[str, ...],
        Parameter(negative=(), help="Check this promise only (repeatable).", metavar="ID"),
    ] = (),
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Say what this machine can do, what is in force, and what to do about what is missing."""
    from divingbell.surfaces.cli.doctor import report
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: report(settings, check=check, only=only, as_json=json))


image = App(
    name="image",
    help="Make, list and clear up the root file system of containers.",
    help_format="plaintext",
    help_epilogue="",
)
app.command(image)


@image.command(name="build")
def build_image(
    *,
    from_registry: Annotated[
        bool,
        Parameter(negative=(), help="Build it from a Dockerfile, with packages of a registry."),
    ] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Make it from this machine unless there is a current one, and give it to Docker."""
    from divingbell.surfaces.cli import image

    return image.build(options.load(), from_registry=from_registry)


@image.command(name="list")
def list_images(*, options: HostOptions = HostOptions()) -> int:  # noqa: B008
    """List what there is, and what of it is stale."""
    from divingbell.surfaces.cli import image

    return image.show(options.load())


@image.command(name="prune")
def prune_images(*, options: HostOptions = HostOptions()) -> int:  # noqa: B008
    """Remove what is stale."""
    from divingbell.surfaces.cli import image

    return image.prune(options.load())


@image.command(name="dockerfile")
def write_dockerfile(
    folder: Annotated[Path, Parameter(help="Where to write it.")],
    /,
    *,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Write a Dockerfile for the same content, and all that it copies."""
    from divingbell.surfaces.cli import image

    return image.write_dockerfile(folder, options.load())


profile = App(
    name="profile",
    help="List and clear up the environments that sandboxes see: Python and its packages.",
    help_format="plaintext",
    help_epilogue="",
)
app.command(profile)


@profile.command(name="list")
def list_profiles(*, options: HostOptions = HostOptions()) -> int:  # noqa: B008
    """List what there is, how large it is, and when it was last used."""
    from divingbell.surfaces.cli import profiles

    return profiles.show(options.load())


@profile.command(name="prune")
def prune_profiles(
    *,
    days: Annotated[
        int, Parameter(help="Remove what was not used for so many days [default: 30].")
    ] = 30,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Remove what is not used any more, and never the one for these settings."""
    from divingbell.surfaces.cli import profiles

    return profiles.prune(options.load(), days=days)


policy = App(
    name="policy",
    help="Say what the rules of these settings do about calls of tools.",
    help_format="plaintext",
    help_epilogue="",
)
app.command(policy)


@policy.command(
    name="explain",
    help_epilogue="Exit status: 1 if the call is denied, 0 if it is allowed, if a person is asked "
    "and if it depends on the arguments, 2 for wrong usage or configuration.",
)
def explain_policy(
    name: Annotated[str, Parameter(help="The tool, as server.tool.")],
    /,
    *,
    user: Annotated[
        str, Parameter(help="Whose call it is [default: nobody's in particular].")
    ] = "",
    arguments: Annotated[
        str | None,
        Parameter(help="The arguments as a JSON object [default: any].", metavar="JSON"),
    ] = None,
    after: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="A tool that the conversation has called before (repeatable).",
            metavar="NAME",
        ),
    ] = (),
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Say whether a call would be made, and which rules decide. No server is started.

    It names the rules about the tool, the arguments that the host sets,
    the earlier calls that hold this one back, and those that it holds back.
    """
    from divingbell.surfaces.cli import policy

    call = policy.Call(name, user, arguments, after)
    return policy.explain(call, options.load(), as_json=json)


@app.command(
    help_epilogue="Exit status: 1 if the code would be refused, a person would be asked, or it is "
    "no Python; 0 if it would run, 2 for wrong usage or configuration."
)
def review(
    file: Annotated[str, Parameter(help="The file with the code, or a notebook; - for stdin.")],
    /,
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Say what code would try to do, and what the settings say about that. Nothing is run.

    It names processes, network, endless loops, huge values, files outside of
    the workspace, and the tools that are called. It is advice: the walls hold without it.
    """
    from divingbell.surfaces.cli import reviewing, running

    cells = reviewing.cells_of(running.read_script(file, ()).code, file)
    return reviewing.show(cells, options.load(), as_json=json)


vault = App(
    name="vault",
    help="Say what is kept of that which models do not see.",
    help_format="plaintext",
    help_epilogue="",
)
app.command(vault)


@vault.default
def show_vault(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Say how many values are kept of each kind, where, and for how long. It shows none of them.

    They are those that models do not see: tokens such as [EMAIL_482715] stand for them.
    """
    from divingbell.surfaces.cli.terminal import signals
    from divingbell.surfaces.cli.vault import show

    settings = options.load()
    return signals.run(lambda _: show(settings, as_json=json))


@vault.command(
    name="reveal",
    help_epilogue="Exit status: 1 if a token is not known, 0 if all are, 2 for wrong usage or "
    "configuration.",
)
def reveal_tokens(
    file: Annotated[str, Parameter(help="The file with the text; - for stdin.")] = "-",
    /,
    *,
    conversation: Annotated[
        str,
        Parameter(
            help="Whose tokens they are, if two conversations have the same one; "
            "the command says which there are.",
            metavar="NAME",
        ),
    ] = "",
    to_program: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Print it where there is no terminal: a program reads it then, perhaps a model.",
        ),
    ] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Print a text with the real values, secrets too, in place of its tokens: for a person.

    It needs the key of the vault. Tokens that are not known stay, and are told on stderr.
    """
    from divingbell.surfaces.cli import vault
    from divingbell.surfaces.cli.terminal import signals

    vault.check_reader(to_program=to_program)
    settings = options.load()
    text = vault.read_text(file)
    return signals.run(lambda _: vault.reveal(text, settings, conversation=conversation))


audit = App(
    name="audit",
    help="Read, verify and export the audit log: who ran and called what.",
    help_format="plaintext",
    help_epilogue="",
)
app.command(audit)


@audit.command(name="tail")
def tail_audit(
    *,
    lines: Annotated[
        int, Parameter(alias="-n", help="How many records [default: 20].", metavar="N")
    ] = 20,
    follow: Annotated[
        bool, Parameter(alias="-f", negative=(), help="Show those that come, too.")
    ] = False,
    json: Annotated[bool, Parameter(negative=(), help="Print records as lines of JSON.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Show the newest records of all processes that write to this log."""
    from divingbell.surfaces.cli import audit

    return audit.tail(options.load(), lines, follow=follow, as_json=json)


@audit.command(name="search")
def search_audit(
    *,
    wanted: AuditFilter = AuditFilter(),  # noqa: B008
    json: Annotated[bool, Parameter(negative=(), help="Print records as lines of JSON.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Show the records that fit all that is given, the oldest first."""
    from divingbell.surfaces.cli import audit

    return audit.search(options.load(), wanted, as_json=json)


@audit.command(name="export")
def export_audit(
    *,
    format: Annotated[
        Literal["jsonl", "ocsf"],
        Parameter(help="jsonl, or ocsf for tools that read that schema [default: jsonl]."),
    ] = "jsonl",
    wanted: AuditFilter = AuditFilter(),  # noqa: B008
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Print the records that fit as lines of JSON, for other programs."""
    from divingbell.surfaces.cli import audit

    return audit.export(options.load(), wanted, as_ocsf=format == "ocsf")


@audit.command(
    name="verify",
    help_epilogue="Exit status: 1 if a part is changed, cut or unproven, 0 if all is whole, or "
    "torn by a crash at its end, 2 for wrong usage or configuration.",
)
def verify_audit(
    *,
    key: Annotated[
        str, Parameter(help="The public key [default: of the key in the settings].", metavar="KEY")
    ] = "",
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Say whether the log is as it was written: each record, and that none is missing."""
    from divingbell.surfaces.cli import audit

    return audit.verify(options.load(), key, as_json=json)


@audit.command(name="head")
def show_audit_head(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Show the public key, and how far each part of the log is signed: to be kept elsewhere."""
    from divingbell.surfaces.cli import audit

    return audit.head(options.load(), as_json=json)


app.command(skills)


@app.command(help_epilogue="")
def trust(
    path: Annotated[
        Path | None, Parameter(help="The folder [default: the current one].", metavar="FOLDER")
    ] = None,
    /,
    *,
    list: Annotated[bool, Parameter(negative=(), help="List what is trusted.")] = False,
    revoke: Annotated[bool, Parameter(negative=(), help="Trust it no more.")] = False,
) -> int:
    """Show what a folder's divingbell.toml and mcp.json would do, and ask whether to use them."""
    from divingbell.surfaces.cli import trusting

    if list:
        return trusting.show()
    return trusting.revoke(path) if revoke else trusting.look(path)


@app.command(help_epilogue="")
def stats(
    *,
    days: Annotated[int, Parameter(help="How many days back [default: 30].")] = 30,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
) -> int:
    """Show the tokens that models read, and those that they were spared."""
    from divingbell.surfaces.cli.stats import show

    return show(days=days, as_json=json)


@app.command(help_epilogue="")
def demo(*, options: HostOptions = HostOptions()) -> int:  # noqa: B008
    """Show what it is for: tools called from code, a plot, blocked attacks, limits, timings."""
    from divingbell.surfaces.cli.demo import show
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: show(settings))


_AVAILABLE = " Available commands: "


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, as listed in `exit_status`."""
    _mend_streams()
    logs.screen_by(BLOTTER.blotted)
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
    with contextlib.suppress(OSError):
        print(f"divingbell: {uncovered(message)}", file=sys.stderr, flush=True)
    return status
