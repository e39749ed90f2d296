"""The commands of `divingbell profile` and their options."""

from typing import Annotated

from cyclopts import App, Parameter

from divingbell.surfaces.cli.options import HostOptions

profile = App(
    name="profile",
    help="List and clear up the environments that sandboxes see: Python and its packages.",
    help_format="plaintext",
    help_epilogue="",
)


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
