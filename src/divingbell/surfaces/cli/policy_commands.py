"""The commands of `divingbell policy` and their options."""

from typing import Annotated

from cyclopts import App, Parameter

from divingbell.surfaces.cli.options import HostOptions

policy = App(
    name="policy",
    help="Say what the rules of these settings do about calls of tools.",
    help_format="plaintext",
    help_epilogue="",
)


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
