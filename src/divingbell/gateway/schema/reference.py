"""References within a schema: `$ref` is followed inside the same schema, and nowhere else."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

Schema = Any
"""A schema as the server sent it: a dict or a bool if it is right, anything if it is not."""


def resolve(root: Schema, reference: str) -> Schema | None:
    """Return the part of `root` that a `$ref` such as `#/$defs/x` points to.

    None if it points elsewhere or to nothing.
    """
    if reference == "#":
        return root
    if not reference.startswith("#/") or len(reference) > 1000:
        return None
    found = root
    for piece in reference[2:].split("/"):
        key = unquote(piece).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and len(key) < 8 and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found
