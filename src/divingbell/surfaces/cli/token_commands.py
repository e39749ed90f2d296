"""The commands of `divingbell token` and their options."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

token = App(
    name="token",
    help="Make, list and revoke tokens for `divingbell serve --http`.",
    help_format="plaintext",
    help_epilogue="",
)
Word = Literal["run", "read", "approve", "reveal", "metrics", "admin", "private"]


@token.command(name="create")
def create_token(
    user: Annotated[str, Parameter(help="Whose token it is: what they do has this name.")],
    /,
    *,
    scope: Annotated[
        tuple[Word, ...],
        Parameter(
            negative=(),
            help="What it is for (repeatable): run, read, approve, reveal, metrics, admin "
            "[default: run, read, approve]. With private, personal data is kept from its user's "
            "models.",
            metavar="SCOPE",
        ),
    ] = (),
    days: Annotated[
        float | None, Parameter(help="Days after which it expires [default: never].")
    ] = None,
    note: Annotated[str, Parameter(help="A word about what it is for.")] = "",
) -> int:
    """Make a token and print it. Only its hash is kept: nobody can print it again.

    It holds at once, also in a server that runs.
    """
    from divingbell.surfaces.cli import tokens

    return tokens.create(user, scope, days, note)


@token.command(name="list")
def list_tokens(
    *,
    json: Annotated[bool, Parameter(negative=(), help="Print one JSON object.")] = False,
) -> int:
    """List the tokens: whose they are, what they are for, when they expire."""
    from divingbell.surfaces.cli import tokens

    return tokens.show(as_json=json)


@token.command(name="revoke")
def revoke_token(
    identifier: Annotated[str, Parameter(help="Its id, as `token list` shows it.", metavar="ID")],
    /,
) -> int:
    """Revoke a token. It lets nobody in from now on, also in a server that runs."""
    from divingbell.surfaces.cli import tokens

    return tokens.revoke(identifier)
