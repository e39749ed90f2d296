"""The keywords of JSON Schema, one function each.

What is accepted without a look, and why, stands in `check.py`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from divingbell.gateway.schema.problem import (
    MAX_ANSWERS,
    Place,
    in_short,
    kind_of,
    likely,
    unknown,
)
from divingbell.gateway.schema.reference import resolve
from divingbell.gateway.schema.walk import MAX_PROBLEMS, TYPES, Found, Rule, Walk

COST_OF_HINT = 500
"""Steps that looking for it counts as."""


def _properties(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(value, dict) and isinstance(rule, dict):
        walk.spend(len(value) >> 4)
        for name, inner in value.items():
            if name in rule:
                walk.value(inner, rule[name], (place, name), found, depth)
                if len(found) >= MAX_PROBLEMS:
                    return


def _required(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(value, dict) and isinstance(rule, list):
        walk.spend(len(rule) >> 3)
        for name in rule:
            if isinstance(name, str) and name not in value:
                found.append(((place, name), "required", "is required"))
                if len(found) >= MAX_PROBLEMS:
                    return


def _additional(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(value, dict) or rule is True or "patternProperties" in schema:
        return
    known = schema.get("properties")
    if not isinstance(known, dict):
        known = {}
    walk.spend(len(value) >> 4)
    for name, inner in value.items():
        if name in known:
            continue
        if rule is False:
            walk.spend(COST_OF_HINT)
            found.append(((place, name), "additionalProperties", unknown(name, known)))
        else:
            walk.value(inner, rule, (place, name), found, depth)
        if len(found) >= MAX_PROBLEMS:
            return


def _items(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(value, list | tuple):
        return
    first = 0
    if isinstance(rule, list):  # the older form of prefixItems
        _prefix(walk, value, rule, schema, place, found, depth)
        return
    if isinstance(prefix := schema.get("prefixItems"), list):
        first = len(prefix)
    for number in range(first, len(value)):
        walk.value(value[number], rule, (place, number), found, depth)
        if len(found) >= MAX_PROBLEMS:
            return


def _prefix(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(value, list | tuple) and isinstance(rule, list):
        for number, (inner, wanted) in enumerate(zip(value, rule, strict=False)):
            walk.value(inner, wanted, (place, number), found, depth)


def _enum(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(rule, list):
        return
    walk.spend(len(rule) >> 4)
    if isinstance(value, str):
        if value in rule:
            return
    else:
        mine = walk.frozen(value)
        if any(type(item) is not str and walk.frozen(item) == mine for item in rule):
            return
    walk.spend(len(rule[:MAX_ANSWERS]))
    hint = ""
    if isinstance(value, str):
        walk.spend(COST_OF_HINT)
        hint = likely(value, [item for item in rule[:MAX_ANSWERS] if isinstance(item, str)])
    values = ", ".join(in_short(item) for item in rule[:12])
    if len(rule) > 12:
        values += f" … ({len(rule):,} values)"
    found.append((place, "enum", f"must be one of {values}, not {in_short(value)}{hint}"))


def _const(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if walk.frozen(value) != walk.frozen(rule):
        found.append((place, "enum", f"must be {in_short(rule)}, not {in_short(value)}"))


def _bound(wrong: Callable[[Any, Any], bool], words: str) -> Rule:
    def rule_of_numbers(
        walk: Walk, value: Any, rule: Any, schema: Any, place: Any, found: list[Found], depth: int
    ) -> None:
        if TYPES["number"](value) and TYPES["number"](rule) and wrong(value, rule):
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


def _length(kind: type | tuple[type, ...], least: bool, unit: str) -> Rule:
    def rule_of_length(
        walk: Walk, value: Any, rule: Any, schema: Any, place: Any, found: list[Found], depth: int
    ) -> None:
        if not isinstance(value, kind) or not TYPES["number"](rule):
            return
        length = len(value)  # type: ignore[arg-type]  # each of the kinds has one
        if length < rule if least else length > rule:
            words = "at least" if least else "at most"
            found.append(
                (place, "length", f"must have {words} {in_short(rule)} {unit}, not {length}")
            )

    return rule_of_length


def _unique_items(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if rule is True and isinstance(value, list | tuple):
        seen = set()
        for number, item in enumerate(value):
            frozen = walk.frozen(item)
            if frozen in seen:
                found.append(
                    ((place, number), "uniqueItems", "is there twice, and all items must differ")
                )
                return
            seen.add(frozen)


def _all_of(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if isinstance(rule, list):
        for branch in rule:
            walk.value(value, branch, place, found, depth)
            if len(found) >= MAX_PROBLEMS:
                return


def _any_of(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(rule, list) or not rule:
        return
    failed = []
    for branch in rule:
        problems = walk.fits(value, branch, place, depth)
        if not problems:
            return
        failed.append(problems)
    found += _most_helpful(failed, value, place)


def _one_of(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    if not isinstance(rule, list) or not rule:
        return
    failed = []
    fitting = 0
    guesses = walk.guesses
    for branch in rule:
        if problems := walk.fits(value, branch, place, depth):
            failed.append(problems)
        else:
            fitting += 1
    if not fitting:
        found += _most_helpful(failed, value, place)
    elif fitting > 1 and walk.guesses == guesses:
        found.append((place, "oneOf", f"fits {fitting} of {len(rule)} forms, and must fit one"))


def _not(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    guesses = walk.guesses
    if not walk.fits(value, rule, place, depth) and walk.guesses == guesses:
        found.append((place, "not", "has a form that the schema excludes"))


def _reference(
    walk: Walk, value: Any, rule: Any, schema: Any, place: Place, found: list[Found], depth: int
) -> None:
    walk.spend(1)
    target = resolve(walk.root, rule) if isinstance(rule, str) else None
    if target is None:
        walk.guesses += 1
    else:
        walk.value(value, target, place, found, depth)


RULES: Mapping[str, Rule] = {
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
