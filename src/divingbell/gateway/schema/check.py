"""The check of values against the JSON Schema that a server gives for a tool.

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
from collections.abc import Mapping
from typing import Any

from divingbell.gateway.schema.keywords import RULES
from divingbell.gateway.schema.members import members_of
from divingbell.gateway.schema.problem import Problem, path_of, unknown
from divingbell.gateway.schema.reference import Schema
from divingbell.gateway.schema.walk import MAX_PROBLEMS, BudgetSpent, Found, Walk
from divingbell.shares import weight

BUDGET = 20_000
"""Steps of a few microseconds each. A hostile schema costs a tenth of a second, no more."""
AT_ONCE = 1_000
"""Steps that are taken on the event loop: some 5 ms. What takes more is done in a thread."""


async def checked(value: Any, schema: Schema) -> list[Problem]:
    """Return the problems that `check` finds, without holding up others on the event loop."""
    found, is_whole = _look(value, schema, AT_ONCE)
    if is_whole:
        return _problems(found)
    return await weight.in_thread(lambda: check(value, schema))


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
        Walk(schema, budget, RULES).value(value, _as_dict(schema), None, found, 0)
    except BudgetSpent:
        return found, False
    return found, True


def _problems(found: list[Found]) -> list[Problem]:
    return [Problem(path_of(place), message) for place, _, message in found]


def _as_dict(schema: Schema) -> Schema:
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
            walk = Walk(schema, budget // len(names), RULES)
            walk.value(hollow, properties[name], place, problems, 0)
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
