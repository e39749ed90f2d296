"""The commands that stand alone, and their options. What they do is in the module of that name."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.chat_options import ChatOptions
from divingbell.surfaces.cli.options import HostOptions, RunOptions, SandboxOptions
from divingbell.surfaces.cli.serve_options import ServeOptions


def run(
    file: Annotated[str, Parameter(help="The file with the code; - for stdin.")],
    /,
    *arguments: Annotated[
        str, Parameter(help="Arguments for the script: all that stands after FILE.")
    ],
    options: RunOptions = RunOptions(),  # noqa: B008 (it is frozen)
) -> int:
    """Run a file in a fresh session, and show its output as it comes."""
    from divingbell.surfaces.cli import running
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    script = running.read_script(file, arguments)
    return signals.run(lambda caught: running.run_once(script, options, settings, caught))


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


def shell(*, options: SandboxOptions = SandboxOptions()) -> int:  # noqa: B008
    """Open a prompt in a session: variables and files stay until you leave."""
    from divingbell.surfaces.cli.shell import converse
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda caught: converse(options, settings, caught))


def chat(
    *paths: Annotated[
        Path,
        Parameter(help="Files, which are copied to /workspace, and folders, which code can read."),
    ],
    options: ChatOptions = ChatOptions(),  # noqa: B008
) -> int:
    """Talk to a model that works for you in a session: about your files, with your tools."""
    from divingbell.surfaces.cli import chat, chat_files
    from divingbell.surfaces.cli.chat_options import Paths
    from divingbell.surfaces.cli.terminal import signals

    options.check()
    given = Paths.of(paths)
    settings = chat_files.with_folders(options.applied(options.load()), given)
    if options.acp:
        from divingbell.surfaces.cli import chat_editor

        return signals.run(lambda _: chat_editor.serve(given, options, settings))
    return signals.run(lambda caught: chat.chat(given, options, settings, caught))


def serve(*, options: ServeOptions = ServeOptions()) -> int:  # noqa: B008
    """Be an MCP server: in front of other MCP servers, over stdin and stdout or over HTTP."""
    from divingbell.surfaces.cli import serving
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda caught: serving.serve(options, settings, caught))


def node(
    *,
    name: Annotated[
        str | None, Parameter(help="Its name [default: that of this machine, and its process].")
    ] = None,
    host: Annotated[str, Parameter(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 for any [default: 0].")] = 0,
    secret_file: Annotated[
        Path | None,
        Parameter(
            help="The file with the secret that fronts must know; it is made where it is not there "
            "[default: DIVINGBELL_NODE_SECRET].",
            metavar="FILE",
        ),
    ] = None,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Hold sessions for programs that are elsewhere, and print the address."""
    from divingbell.surfaces.cli import node_running
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    secret = node_running.secret_of(secret_file)
    found = node_running.NodeOptions(name, host, port, secret, options.backend)
    return signals.run(lambda _: node_running.hold(found, settings))


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


def logout(
    server: Annotated[str, Parameter(help="The name of the server.")],
    /,
    *,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Throw the tokens of a sign-in away."""
    from divingbell.surfaces.cli.signing_in import log_out

    return log_out(server, options.load())


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


def review(
    file: Annotated[str, Parameter(help="The file with the code, or a notebook; - for stdin.")],
    /,
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Say what code would try to do, and what the settings say about that. Nothing is run."""
    from divingbell.surfaces.cli import reviewing, running

    cells = reviewing.cells_of(running.read_script(file, ()).code, file)
    return reviewing.show(cells, options.load(), as_json=json)


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


def stats(
    *,
    days: Annotated[int, Parameter(help="How many days back [default: 30].")] = 30,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
) -> int:
    """Show the tokens that models read, and those that they were spared."""
    from divingbell.surfaces.cli.stats import show

    return show(days=days, as_json=json)


def demo(*, options: HostOptions = HostOptions()) -> int:  # noqa: B008
    """Show what it is for: tools called from code, a plot, blocked attacks, limits, timings."""
    from divingbell.surfaces.cli.demo import show
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: show(settings))
