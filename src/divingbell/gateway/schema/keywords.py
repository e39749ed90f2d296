"""The keywords of JSON Schema, one function each, and the run over a schema that calls them.

What is accepted without a look, and why, stands in `schema.py`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from divingbell.gateway.schema.problem import (
    MAX_ANSWERS,
    Place,
    in_short,
    kind_of,
    kinds_in_words,
    likely,
    unknown,
)

MAX_DEPTH = 48
MAX_PROBLEMS = 5
COST_OF_HINT = 500
"""What looking for it costs, in steps."""

Schema = Any
"""A schema as the server sent it: a dict or a bool if it is right, anything if it is not."""
Found = tuple[Place, str, str]
"""Where, which keyword, and the message."""


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


class BudgetSpent(Exception):
    """The steps of a check are used up."""


# Keywords that can refuse a value and are not looked at. With one of them, "it fits" is a guess.
_UNCHECKED = frozenset(
    (
        *("pattern", "patternProperties", "format", "propertyNames", "contains", "if"),
        *("dependentRequired", "dependentSchemas", "dependencies"),
        *("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"),
    )
)


class Check:
    """One check: the whole schema, the steps that are left, and whether all could be decided."""

    def __init__(self, root: Schema, budget: int) -> None:
        self.root = root
        self.left = budget
        self.guesses = 0
        """How often something was accepted that could not be decided."""

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent

    def value(
        self, value: Any, schema: Schema, place: Place, found: list[Found], depth: int
    ) -> None:
        """Add to `found` what is wrong with one value at one place."""
        if schema is True:
            return
        if schema is False:
            found.append((place, "false", "is not allowed"))
            return
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            self.spend(1)
            self.guesses += 1
            return
        self.spend(1 + (len(schema) >> 3))
        if value is None and schema.get("nullable") is True:
            return
        kinds = schema.get("type")
        if kinds is not None and not self._is_one(value, kinds):
            found.append((place, "type", f"must be {kinds_in_words(kinds)}, not {kind_of(value)}"))
            return
        if not _UNCHECKED.isdisjoint(schema):
            self.guesses += 1
        for keyword, rule in schema.items():
            if (checked := _RULES.get(keyword)) is not None:
                checked(self, value, rule, schema, place, found, depth + 1)
                if len(found) >= MAX_PROBLEMS:
                    return

    def fits(self, value: Any, schema: Schema, place: Place, depth: int) -> list[Found]:
        """Return what is wrong with a value for one branch, apart from the rest."""
        found: list[Found] = []
        self.value(value, schema, place, found, depth)
        return found

    def _is_one(self, value: Any, kinds: Any) -> bool:
        if isinstance(kinds, str):
            tested = _TYPES.get(kinds)
            if tested is None:
                self.guesses += 1
                return True
            return tested(value)
        if isinstance(kinds, list) and kinds:
            self.spend(len(kinds) >> 3)
            if all(isinstance(kind, str) for kind in kinds):
                return any(self._is_one(value, kind) for kind in kinds)
        self.guesses += 1
        return True

    def frozen(self, value: Any, depth: int = 0) -> Any:
        """Return something hashable, equal for equal JSON values: 1.0 is 1, true is not."""
        self.spend(1)
        if depth > MAX_DEPTH:
            raise BudgetSpent
        if isinstance(value, bool) or value is None:
            return ("constant", value)
        if isinstance(value, dict):
            return frozenset((key, self.frozen(inner, depth + 1)) for key, inner in value.items())
        if isinstance(value, list | tuple):
            return ("array", *(self.frozen(inner, depth + 1) for inner in value))
        return value


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}
_Rule = Callable[[Check, Any, Any, dict[str, Any], Place, list[Found], int], None]


def _properties(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(value, dict) and isinstance(rule, dict):
        run.spend(len(value) >> 4)
        for name, inner in value.items():
            if name in rule:
                run.value(inner, rule[name], (place, name), found, depth)
                if len(found) >= MAX_PROBLEMS:
                    return


def _required(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(value, dict) and isinstance(rule, list):
        run.spend(len(rule) >> 3)
        for name in rule:
            if isinstance(name, str) and name not in value:
                found.append(((place, name), "required", "is required"))
                if len(found) >= MAX_PROBLEMS:
                    return


def _additional(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(value, dict) or rule is True or "patternProperties" in schema:
        return
    listed = schema.get("properties")
    if not isinstance(listed, dict):
        listed = {}
    run.spend(len(value) >> 4)
    for name, inner in value.items():
        if name in listed:
            continue
        if rule is False:
            run.spend(COST_OF_HINT)
            found.append(((place, name), "additionalProperties", unknown(name, listed)))
        else:
            run.value(inner, rule, (place, name), found, depth)
        if len(found) >= MAX_PROBLEMS:
            return


def _items(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(value, list | tuple):
        return
    first = 0
    if isinstance(rule, list):  # the older form of prefixItems
        _prefix(run, value, rule, schema, place, found, depth)
        return
    if isinstance(prefix := schema.get("prefixItems"), list):
        first = len(prefix)
    for number in range(first, len(value)):
        run.value(value[number], rule, (place, number), found, depth)
        if len(found) >= MAX_PROBLEMS:
            return


def _prefix(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(value, list | tuple) and isinstance(rule, list):
        for number, (inner, wanted) in enumerate(zip(value, rule, strict=False)):
            run.value(inner, wanted, (place, number), found, depth)


def _enum(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(rule, list):
        return
    run.spend(len(rule) >> 4)
    if isinstance(value, str):
        if value in rule:
            return
    else:
        mine = run.frozen(value)
        if any(type(item) is not str and run.frozen(item) == mine for item in rule):
            return
    run.spend(len(rule[:MAX_ANSWERS]))
    hint = ""
    if isinstance(value, str):
        run.spend(COST_OF_HINT)
        hint = likely(value, [item for item in rule[:MAX_ANSWERS] if isinstance(item, str)])
    values = ", ".join(in_short(item) for item in rule[:12])
    if len(rule) > 12:
        values += f" … ({len(rule):,} values)"
    found.append((place, "enum", f"must be one of {values}, not {in_short(value)}{hint}"))


def _const(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if run.frozen(value) != run.frozen(rule):
        found.append((place, "enum", f"must be {in_short(rule)}, not {in_short(value)}"))


def _bound(wrong: Callable[[Any, Any], bool], words: str) -> _Rule:
    def rule_of_numbers(
        run: Check, value: Any, rule: Any, schema: Any, place: Any, found: list[Found], depth: int
    ) -> None:
        if _TYPES["number"](value) and _TYPES["number"](rule) and wrong(value, rule):
            found.append(
                (place, "range", f"must be {words} {in_short(rule)}, not {in_short(value)}")
            )

    return rule_of_numbers


def _not_multiple(value: Any, rule: Any) -> bool:
    if isinstance(value, int) and isinstance(rule, int):
        return rule > 0 and value % rule != 0
    try:
        times = value / rule
    except (ZeroDivisionError, OverflowError):
        return False
    return math.isfinite(times) and abs(times - round(times)) > 1e-9 * max(1.0, abs(times))


def _length(kind: type | tuple[type, ...], least: bool, unit: str) -> _Rule:
    def rule_of_length(
        run: Check, value: Any, rule: Any, schema: Any, place: Any, found: list[Found], depth: int
    ) -> None:
        if not isinstance(value, kind) or not _TYPES["number"](rule):
            return
        length = len(value)  # type: ignore[arg-type]  # each of the kinds has one
        if length < rule if least else length > rule:
            words = "at least" if least else "at most"
            found.append(
                (place, "length", f"must have {words} {in_short(rule)} {unit}, not {length}")
            )

    return rule_of_length


def _unique_items(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if rule is True and isinstance(value, list | tuple):
        seen = set()
        for number, item in enumerate(value):
            frozen = run.frozen(item)
            if frozen in seen:
                found.append(((place, number), "uniqueItems", "is there twice"))
                return
            seen.add(frozen)


def _all_of(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(rule, list):
        for branch in rule:
            run.value(value, branch, place, found, depth)
            if len(found) >= MAX_PROBLEMS:
                return


def _any_of(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(rule, list) or not rule:
        return
    failed = []
    for branch in rule:
        problems = run.fits(value, branch, place, depth)
        if not problems:
            return
        failed.append(problems)
    found += _most_helpful(failed, value, place)


def _one_of(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(rule, list) or not rule:
        return
    failed = []
    fitting = 0
    guesses = run.guesses
    for branch in rule:
        if problems := run.fits(value, branch, place, depth):
            failed.append(problems)
        else:
            fitting += 1
    if not fitting:
        found += _most_helpful(failed, value, place)
    elif fitting > 1 and run.guesses == guesses:
        found.append((place, "oneOf", f"fits {fitting} of {len(rule)} forms that exclude another"))


def _not(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    guesses = run.guesses
    if not run.fits(value, rule, place, depth) and run.guesses == guesses:
        found.append((place, "not", "has a form that is excluded"))


def _reference(
    run: Check, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    run.spend(1)
    target = resolve(run.root, rule) if isinstance(rule, str) else None
    if target is None:
        run.guesses += 1
    else:
        run.value(value, target, place, found, depth)


_RULES: dict[str, _Rule] = {
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "prefixItems": _prefix,
    "enum": _enum,
    "const": _const,
    "minimum": _bound(lambda value, rule: bool(value < rule), "at least"),
    "maximum": _bound(lambda value, rule: bool(value > rule), "at most"),
    "exclusiveMinimum": _bound(lambda value, rule: bool(value <= rule), "more than"),
    "exclusiveMaximum": _bound(lambda value, rule: bool(value >= rule), "less than"),
    "multipleOf": _bound(_not_multiple, "a multiple of"),
    "minLength": _length(str, True, "characters"),
    "maxLength": _length(str, False, "characters"),
    "minItems": _length((list, tuple), True, "items"),
    "maxItems": _length((list, tuple), False, "items"),
    "minProperties": _length(dict, True, "entries"),
    "maxProperties": _length(dict, False, "entries"),
    "uniqueItems": _unique_items,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "$ref": _reference,
}


def _most_helpful(failed: Sequence[list[Found]], value: Any, place: Place) -> list[Found]:
    """Return the problems of the branch that was most likely meant."""

    def unlikely(problems: list[Found]) -> tuple[bool, bool, int]:
        return (
            # another kind of value altogether
            any(where == place and keyword == "type" for where, keyword, _ in problems),
            # a dict whose "kind" says that it is another form
            any(keyword == "enum" and where != place for where, keyword, _ in problems),
            len(problems),
        )

    best = min(failed, key=unlikely)
    if not unlikely(best)[0]:
        return best
    wanted = dict.fromkeys(
        message.removeprefix("must be ").rsplit(", not ", 1)[0]
        for problems in failed
        for where, keyword, message in problems
        if where == place and keyword == "type"
    )
    return [(place, "type", f"must be {' or '.join(wanted)}, not {kind_of(value)}")]
