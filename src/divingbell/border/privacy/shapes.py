"""All shapes."""

import importlib.util

from divingbell.border.privacy import contacts, identities, payments, phones, secrets
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.shape import Shape
from divingbell.errors import ConfigError

_SHAPES: tuple[Shape, ...] = (
    *secrets.SHAPES,
    *payments.SHAPES,
    *identities.SHAPES,
    *contacts.SHAPES,
    *phones.SHAPES,
)
_CHECKED_BY = {"PHONE": "phonenumbers", "NATIONAL_ID": "stdnum", "TAX_ID": "stdnum"}
"""Kinds whose values a package of the extra `privacy` checks."""


def of_kinds(kinds: frozenset[str]) -> list[Shape]:
    """Return the shapes of these kinds.

    Raises:
        ConfigError: there is no such kind, or a package that checks its values is missing.
    """
    if unknown := sorted(kinds - KINDS.keys()):
        raise ConfigError(f"There is no kind {unknown[0]!r}. There are: {', '.join(KINDS)}.")
    for kind in sorted(kinds & _CHECKED_BY.keys()):
        if importlib.util.find_spec(_CHECKED_BY[kind]) is None:
            raise ConfigError(
                f"What checks values of the kind {kind} is not installed: "
                "`pip install 'divingbell[privacy]'`."
            )
    return [shape for shape in _SHAPES if shape.kind in kinds]
