"""The commands of `divingbell nodes` and their options."""

from typing import Annotated

from cyclopts import App, Parameter

from divingbell.surfaces.cli.options import HostOptions

nodes = App(
    name="nodes",
    help="List the nodes of a Ray cluster that hold sessions, and drain one.",
    help_format="plaintext",
    help_epilogue="",
)


@nodes.default
@nodes.command(name="list")
def list_nodes(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON list.")] = False,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """List the nodes: what each of them holds, and what has room there."""
    from divingbell.surfaces.cli.nodes import show
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: show(settings, as_json=json))


@nodes.command(name="drain")
def drain_node(
    name: Annotated[str, Parameter(help="The node, as `divingbell nodes` names it.")],
    /,
    *,
    options: HostOptions = HostOptions(),  # noqa: B008
) -> int:
    """Give a node no more sessions, wait until those that it has have ended, and end it.

    Its machine gets no other node until Ray is started anew there.
    """
    from divingbell.surfaces.cli.nodes import drain
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: drain(settings, name))
