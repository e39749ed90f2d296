"""The commands of `divingbell image` and their options."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from divingbell.surfaces.cli.options import HostOptions

image = App(
    name="image",
    help="Make, list and clear up the root file system of containers.",
    help_format="plaintext",
    help_epilogue="",
)


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
