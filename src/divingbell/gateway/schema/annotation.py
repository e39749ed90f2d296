"""Type annotations of Python, made of JSON Schema.

Everything in a schema is text of others. Source is made of words of ours, of identifiers out of
`naming`, and of literals that `literal` quotes: nothing of a server is ever an expression.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from divingbell.gateway.catalog.naming import RESERVED, identifier, is_safe
from divingbell.gateway.schema.members import members_of
from divingbell.gateway.schema.reference import Schema, resolve
from divingbell.text import is_hiding, one_line

MAX_DEPTH = 6
MAX_NODES = 600
"""Parts of a schema that are spelt out. All after that is `Any`."""
MAX_VALUES = 50
MAX_VALUES_LENGTH = 1200
MAX_BRANCHES = 8
MAX_FIELDS = 120
MAX_COMMENT = 160
MAX_LITERAL = 200

_TYPE_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}


def quoted(text: str) -> str:
    """Return source of a string that is exactly `text`, whatever is in it."""
    if text.isprintable() and not is_hiding(text):
        return json.dumps(text, ensure_ascii=False)
    return ascii(text)


def literal(value: Any) -> str | None:
    """Return source of a JSON value that is no container, or None if it can't be short source."""
    if isinstance(value, str):
        source = quoted(value)
        return source if len(source) <= MAX_LITERAL else None
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if abs(value) < 1 << 64 else None
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return None


class Annotations:
    """The annotations for one tool's schemas, and the classes that they need."""

    def __init__(self, *, classes: bool = True, taken: Collection[str] = ()) -> None:
        self.classes: list[str] = []
        """Source of each TypedDict, in the order in which they must stand."""
        self._named = classes
        self._taken = {*taken, *RESERVED}
        self._left = MAX_NODES
        self._known: dict[tuple[int, str], str] = {}
        self._open: set[tuple[int, str]] = set()
        self._forms: dict[tuple[bool, str], str] = {}

    def of(self, schema: Schema, root: Schema, hint: str, depth: int = 0) -> str:
        """Return the annotation of one schema; `hint` names a class that it may need."""
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._left < 0:
            return "Any"
        found = self._of(schema, root, hint, depth + 1)
        if schema.get("nullable") is True:
            found = union([found, "None"])
        return found

    def _of(self, schema: Mapping[str, Any], root: Schema, hint: str, depth: int) -> str:
        if isinstance(reference := schema.get("$ref"), str):
            return self._referred(reference, root, hint, depth)
        if "const" in schema:
            return _choice([schema["const"]]) or _kind_of(schema["const"])
        if isinstance(values := schema.get("enum"), list) and (choice := _choice(values)):
            return choice
        if isinstance(schema.get("properties"), Mapping):
            return self._object(schema, root, hint, depth)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list) and branches:
                found = self._union(branches, root, hint, depth)
                if found != "Any":
                    return found
        if isinstance(parts := schema.get("allOf"), list) and parts:
            if len(parts) == 1:
                return self.of(parts[0], root, hint, depth)
            return self._object(schema, root, hint, depth)
        kinds = schema.get("type")
        if isinstance(kinds, list) and 0 < len(kinds) <= MAX_BRANCHES:
            return union([self._kind(kind, schema, root, hint, depth) for kind in kinds])
        return self._kind(kinds, schema, root, hint, depth)

    def _kind(
        self, kind: Any, schema: Mapping[str, Any], root: Schema, hint: str, depth: int
    ) -> str:
        if not isinstance(kind, str):
            return "Any"
        if kind == "array":
            items = schema.get("items")
            return f"list[{self.of(items, root, _singular(hint), depth)}]"
        if kind == "object":
            return self._object(schema, root, hint, depth)
        return _TYPE_NAMES.get(kind, "Any")

    def _union(self, branches: list[Any], root: Schema, hint: str, depth: int) -> str:
        if len(branches) > MAX_BRANCHES:
            # Many constants in a row are an enum that somebody wrote the long way.
            constants = [b["const"] for b in branches if isinstance(b, Mapping) and "const" in b]
            return (len(constants) == len(branches) and _choice(constants)) or "Any"
        return union([self.of(branch, root, hint, depth) for branch in branches])

    def _referred(self, reference: str, root: Schema, hint: str, depth: int) -> str:
        key = (id(root), reference)
        if key in self._known:
            return self._known[key]
        target = resolve(root, reference)
        if target is None or key in self._open:
            return "Any"
        self._open.add(key)
        name = reference.rsplit("/", 1)[-1] if "/" in reference else hint
        found = self.of(target, root, name, depth)
        self._open.discard(key)
        if self._left > 0:
            self._known[key] = found
        return found

    def _object(self, schema: Mapping[str, Any], root: Schema, hint: str, depth: int) -> str:
        members = members_of(schema, root)
        if members is None or not members.properties:
            values = schema.get("additionalProperties")
            inner = "Any" if isinstance(values, bool) else self.of(values, root, hint, depth)
            return f"dict[str, {inner}]"
        self._left -= len(members.properties) >> 3
        if not self._named or depth > MAX_DEPTH or len(members.properties) > MAX_FIELDS:
            return "dict[str, Any]"
        fields = [
            (name, self.of(inner, root, name, depth), name in members.required, inner)
            for name, inner in members.properties.items()
        ]
        return self._class(hint, fields)

    def _class(self, hint: str, fields: list[tuple[str, str, bool, Schema]]) -> str:
        total = any(required for _, _, required, _ in fields)
        in_class = all(is_safe(key) or is_safe(key.removeprefix("_")) for key, _, _, _ in fields)
        lines = []
        for key, annotation, required, inner in fields:
            if total and not required:
                annotation = f"NotRequired[{annotation}]"
            entry = (
                f"    {key}: {annotation}" if in_class else f"{8 * ' '}{quoted(key)}: {annotation},"
            )
            lines.append(entry + _comment(inner))
        body = "\n".join(lines)
        if (known := self._forms.get((total, body))) is not None:
            return known  # the same form again, in another place
        name = self._forms[total, body] = self._free(hint)
        if in_class:
            ending = "" if total else ", total=False"
            self.classes.append(f"class {name}(TypedDict{ending}):\n{body}\n")
        else:
            ending = "" if total else "    total=False,\n"
            entries = f"    {quoted(name)},\n    {{\n{body}\n    }},\n{ending}"
            self.classes.append(f"{name} = TypedDict(\n{entries})\n")
        return name

    def _free(self, hint: str) -> str:
        words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", identifier(hint))
        plain = "".join(word[0].upper() + word[1:] for word in words)[:48] or "Item"
        if plain[0].isdigit():
            plain = f"N{plain}"
        name, number = plain, 2
        while name in self._taken or not is_safe(name):
            name, number = f"{plain}{number}", number + 1
        self._taken.add(name)
        return name


def union(annotations: list[str]) -> str:
    """Return the union of annotations, each once, with None behind the others."""
    if "Any" in annotations:
        return "Any"
    pieces = dict.fromkeys(piece for found in annotations for piece in _pieces(found))
    if pieces.pop("None", "") is None:
        pieces["None"] = None
    return " | ".join(pieces)


def _pieces(annotation: str) -> list[str]:
    # Only None is ever taken apart again; a text within a Literal may have any sign in it.
    bare = annotation.removesuffix(" | None")
    return [bare] if bare == annotation else [bare, "None"]


def _choice(values: list[Any]) -> str | None:
    """Return a Literal of some values, or the plain type where they are too many for one."""
    if not values:
        return None
    if len(values) <= MAX_VALUES:
        sources = [None if isinstance(value, float) else literal(value) for value in values]
        known = [source for source in dict.fromkeys(sources) if source is not None]
        if None not in sources and sum(map(len, known)) <= MAX_VALUES_LENGTH:
            others = [source for source in known if source != "None"]
            found = [f"Literal[{', '.join(others)}]"] if others else []
            return union(found + ["None"] * ("None" in known))
    return union(list(dict.fromkeys(_kind_of(value) for value in values)))


def _kind_of(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, list):
        return "list[Any]"
    if isinstance(value, Mapping):
        return "dict[str, Any]"
    return type(value).__name__ if isinstance(value, str | bool | int | float) else "Any"


def _comment(schema: Schema) -> str:
    description = schema.get("description") if isinstance(schema, Mapping) else None
    if not isinstance(description, str) or not description.strip():
        return ""
    return f"  # {one_line(description, MAX_COMMENT)}"


def _singular(hint: str) -> str:
    if hint.endswith("ies"):
        return f"{hint[:-3]}y"
    return hint[:-1] if hint.endswith("s") and not hint.endswith("ss") else hint
