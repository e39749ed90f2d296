"""All shapes."""

from divingbell.border.privacy import contacts, identities, payments, secrets
from divingbell.border.privacy.kinds import KINDS
from divingbell.border.privacy.shape import Shape
from divingbell.errors import ConfigError

_SHAPES: tuple[Shape, ...] = (
    *secrets.SHAPES,
    *payments.SHAPES,
    *identities.SHAPES,
    *contacts.SHAPES,
)


def of_kinds(kinds: frozenset[str]) -> list[Shape]:
    """Return the shapes of these kinds.

    Raises:
        ConfigError: there is no such kind.
    """
    if unknown := sorted(kinds - KINDS.keys()):
        raise ConfigError(f"There is no kind {unknown[0]!r}. There are: {', '.join(KINDS)}.")
    return [shape for shape in _SHAPES if shape.kind in kinds]
