"""Packages as they are asked for: a name, and versions of it."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit


def checked(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the packages in order, each once.

    What installers read as something else is refused: an option such as `--index-url`, another
    file of requirements, a path, a second line.

    Raises:
        ValueError: one is no requirement; the message says what to write.
    """
    stripped = sorted({package.strip() for package in packages})
    for package in stripped:
        if not package.isprintable() or not _is_requirement(package):
            raise ValueError(
                f"{package[:80]!r} is not a requirement: write a name such as scikit-learn>=1.5."
            )
    return tuple(stripped)


DEFAULT = ("pandas", "numpy", "matplotlib", "duckdb", "openpyxl")
"""Of the default profile what people ask for; the rest of it is what these and the sandbox need."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")


def at_hand(packages: Iterable[str]) -> tuple[str, ...]:
    """Return the names of all packages that code can import, given those that were added."""
    names = (_NAME.match(package.strip()) for package in packages)
    added = sorted(name[0].lower() for name in names if name is not None)
    return tuple(dict.fromkeys([*DEFAULT, *added]))


def _is_requirement(package: str) -> bool:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        address = Requirement(package).url
    except InvalidRequirement:
        return False
    return address is None or _is_wheel(address)


def _is_wheel(address: str) -> bool:
    """Whether it is one that is just fetched: all else is built, or asks git, which runs code."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("https", "file") and parts.path.endswith(".whl")
