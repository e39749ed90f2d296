"""The smallest value that fits a JSON Schema, for calls that are made only to be counted."""

from collections.abc import Mapping
from typing import Any

PLAIN: Mapping[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "null": None,
}
DEEPEST = 20


def of(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """Return a value with everything that is required, and nothing else."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        return "text"
    if "$ref" in schema:
        return of(_target(root, schema["$ref"]), root, depth + 1)
    for word in ("const", "default"):
        if schema.get(word) is not None:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    for word in ("anyOf", "oneOf"):
        if schema.get(word) and "properties" not in schema:
            return of(schema[word][0], root, depth + 1)
    if schema.get("allOf") and "properties" not in schema:
        parts = [of(part, root, depth + 1) for part in schema["allOf"]]
        return {
            key: value for part in parts if isinstance(part, dict) for key, value in part.items()
        }
    return _typed(schema, root, depth)


def _typed(schema: Mapping[str, Any], root: Any, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        properties = schema.get("properties", {})
        names = schema.get("required") or []
        return {name: of(properties.get(name, {}), root, depth + 1) for name in names}
    if kind == "array":
        items = schema.get("items", {})
        return [of(items, root, depth + 1) for _ in range(schema.get("minItems", 0))]
    if kind == "string":
        return "text".ljust(schema.get("minLength", 0), "t")[: schema.get("maxLength", 100)]
    if kind in ("integer", "number"):
        return max(1, schema.get("minimum", 1), schema.get("exclusiveMinimum", 0) + 1)
    return PLAIN.get(kind, "text")


def _target(root: Any, reference: str) -> Any:
    found = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part and isinstance(found, Mapping):
            found = found.get(part.replace("~1", "/").replace("~0", "~"), {})
    return found
