"""The members of an object, as its schema lists them over all its parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from divingbell.gateway.schema.reference import Schema, resolve

MAX_DEPTH = 8
MAX_PARTS = 256
"""Parts of a schema that are read; of one that has more, nothing is."""
MAX_PROPERTIES = 20_000
"""Properties of all parts together: some 2 ms."""


@dataclass(slots=True)
class Members:
    """The properties of an object as a schema lists them, collected over its parts."""

    properties: dict[str, Schema] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    """An ordered set: the order is the author's, and often better than that of `properties`."""
    closed: bool | None = None
    """Whether other names are refused (True) or welcome (False), or nothing is said."""
    are_listed: bool = False
    """Whether any part lists properties, be it none."""


def members_of(schema: Schema, root: Schema = None) -> Members | None:
    """Return the members that an object's schema lists, over `$ref`, `allOf`, `anyOf` and `oneOf`.

    None if it lists no properties, or a part of it can't be read.
    """
    members = Members()
    readable = _collect(
        schema, schema if root is None else root, members, True, 0, [MAX_PARTS, MAX_PROPERTIES]
    )
    return members if readable and members.are_listed else None


def _collect(
    schema: Schema, root: Schema, members: Members, certain: bool, depth: int, left: list[int]
) -> bool:
    left[0] -= 1
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH or left[0] < 0:
        return False
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        left[1] -= len(properties)
        if left[1] < 0:
            return False
        for name, inner in properties.items():
            members.properties.setdefault(name, inner)
        members.are_listed = True
    if certain and isinstance(required := schema.get("required"), list):
        left[1] -= len(required)
        members.required |= dict.fromkeys(name for name in required if isinstance(name, str))
    additional = schema.get("additionalProperties")
    if additional is False and depth == 0:
        members.closed = True
    elif (additional is not None and additional is not False) or "patternProperties" in schema:
        members.closed = False
    parts: list[tuple[Schema, bool]] = []
    if isinstance(reference := schema.get("$ref"), str):
        target = resolve(root, reference)
        if target is None:
            return False
        parts.append((target, certain))
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(branches := schema.get(keyword), list):
            parts += [(branch, certain and keyword == "allOf") for branch in branches]
    return all(_collect(part, root, members, sure, depth + 1, left) for part, sure in parts)
