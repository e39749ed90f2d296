"""The commands of `divingbell vault` and their options."""

from typing import Annotated

from cyclopts import App, Parameter

from divingbell.surfaces.cli.options import HostOptions

vault = App(
    name="vault",
    help="Say what is kept of that which models do not see.",
    help_format="plaintext",
    help_epilogue="",
)


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
