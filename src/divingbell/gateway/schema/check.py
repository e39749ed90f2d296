"""Checks values against the JSON Schema that a server gives for a tool.

A check made here tells the code what is wrong before the call leaves. It is a courtesy, not the
border: the server checks its own arguments. So whatever can't be decided cheaply is accepted:

- each check has a budget of steps and a depth. A schema may refer to itself, or have `anyOf` within
  `anyOf` until the sun burns out: past the budget the rest counts as fine. Only what kind of value
  each argument is has steps of its own, so that a long one does not keep the others from a look;
- regular expressions (`pattern`, `patternProperties`, `format`) are never run: some take years;
- a `$ref` that does not point into the same schema means "anything". Nothing is ever fetched.

The `jsonschema` package has no budget and runs the patterns, so it is not used on such schemas.
"""

import contextlib
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from divingbell.gateway.schema.keywords import (
    MAX_PROBLEMS,
    BudgetSpent,
    Check,
    Found,
    Schema,
    resolve,
)
from divingbell.gateway.schema.problem import Problem, path_of, unknown
from divingbell.shares import weight

BUDGET = 20_000
"""Steps of a few microseconds each. A hostile schema costs a tenth of a second, no more."""
AT_ONCE = 1_000
"""Steps that are taken on the event loop: some 5 ms. What takes more is done in a thread."""


async def checked(value: Any, schema: Schema, charge: Callable[[float], object]) -> list[Problem]:
    """Return what `check` does, without holding up others on the event loop.

    `charge` gets the processor time that was spent on it elsewhere.
    """
    found, is_whole = _look(value, schema, AT_ONCE)
    if is_whole:
        return _problems(found)
    return await weight.charged(lambda: check(value, schema), charge)


def check(
    value: Any, schema: Schema, *, budget: int = BUDGET, most: int = MAX_PROBLEMS
) -> list[Problem]:
    """Return the first few problems that a value has with a schema; none if it fits.

    What the budget of steps does not reach is taken as fine, but for the kinds of its members.
    """
    found, is_whole = _look(value, schema, budget)
    if not found and not is_whole:
        found = _wrong_kinds(value, schema, budget // 4)
    return _problems(found[:most])


def _look(value: Any, schema: Schema, budget: int) -> tuple[list[Found], bool]:
    """The problems that are found within so many steps, and whether these were enough.

    What was found until then is wrong, whatever would have come after it.
    """
    found: list[Found] = []
    try:
        Check(schema, budget).value(value, _plain(schema), None, found, 0)
    except BudgetSpent:
        return found, False
    return found, True


def _problems(found: list[Found]) -> list[Problem]:
    return [Problem(path_of(place), message) for place, _, message in found]


def _plain(schema: Schema) -> Schema:
    is_other = isinstance(schema, Mapping) and not isinstance(schema, dict)
    return dict(schema) if is_other else schema


def _wrong_kinds(value: Any, schema: Schema, budget: int) -> list[Found]:
    """The members that are of another kind than their schemas say, whatever is in them."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(properties, Mapping):
        return []
    names = [name for name in value if name in properties]
    found: list[Found] = []
    for name in names:
        inner, place = value[name], (None, name)
        # An empty one of its kind lacks this and that, but its kind is wrong only if it is.
        hollow = type(inner)() if isinstance(inner, dict | list | tuple) else inner
        problems: list[Found] = []
        with contextlib.suppress(BudgetSpent):
            Check(schema, budget // len(names)).value(hollow, properties[name], place, problems, 0)
        found += [each for each in problems if each[0] == place and each[1] == "type"]
    return found


def unknown_names(arguments: Mapping[str, Any], schema: Schema) -> list[Problem]:
    """Return the arguments that a schema does not list though it lists others.

    JSON Schema lets additional properties pass where `additionalProperties` is absent, and most
    servers then ignore them. For code that a model wrote, a misspelt name is a mistake to be told.
    (Where `additionalProperties` is false, `check` reports it.)
    """
    members = members_of(schema)
    if members is None or not members.properties or members.closed is not None:
        return []
    strange = (name for name in arguments if name not in members.properties)
    return [
        Problem(path_of((None, name)), unknown(name, members.properties))
        for name in itertools.islice(strange, MAX_PROBLEMS)
    ]


@dataclass(slots=True)
class Members:
    """The properties of an object as a schema lists them, collected over its parts."""

    properties: dict[str, Schema] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    """An ordered set: the order is the author's, and often better than that of `properties`."""
    closed: bool | None = None
    """Whether other names are refused (True) or welcome (False), or nothing is said."""
    listed: bool = False


def members_of(schema: Schema, root: Schema = None) -> Members | None:
    """Return what a schema of an object lists, over `$ref`, `allOf`, `anyOf` and `oneOf`.

    None if it lists no properties, or a part of it can't be read.
    """
    members = Members()
    readable = _collect(schema, schema if root is None else root, members, True, 0, [256])
    return members if readable and members.listed else None


def _collect(
    schema: Schema, root: Schema, members: Members, certain: bool, depth: int, left: list[int]
) -> bool:
    left[0] -= 1
    if not isinstance(schema, Mapping) or depth > 8 or left[0] < 0:
        return False
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, inner in properties.items():
            members.properties.setdefault(name, inner)
        members.listed = True
    if certain and isinstance(required := schema.get("required"), list):
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
