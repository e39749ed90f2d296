"""The walk over a value and its schema: the rules of the keywords are asked on its way.

What is accepted without a look, and why, stands in `check.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from divingbell.gateway.schema.problem import Place, kind_of, kinds_in_words
from divingbell.gateway.schema.reference import Schema

MAX_DEPTH = 48
MAX_PROBLEMS = 5

Found = tuple[Place, str, str]
"""A problem: its place, the keyword, and the message."""
Rule = Callable[["Walk", Any, Any, dict[str, Any], Place, list[Found], int], None]
"""Adds to the list what a value at a place has against a keyword. It gets the walk, the value, what
the keyword says, the whole schema, the place, the list, and how deep it is."""


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


class Walk:
    """One walk: the whole schema, the steps that are left, and whether all could be decided."""

    def __init__(self, root: Schema, budget: int, rules: Mapping[str, Rule]) -> None:
        self.root = root
        self._rules = rules
        self.left = budget
        self.guesses = 0
        """Times that something was accepted that could not be decided."""

    def spend(self, steps: int) -> None:
        """Count steps. Raises: BudgetSpent if there are no more."""
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
            if (check := self._rules.get(keyword)) is not None:
                check(self, value, rule, schema, place, found, depth + 1)
                if len(found) >= MAX_PROBLEMS:
                    return

    def fits(self, value: Any, schema: Schema, place: Place, depth: int) -> list[Found]:
        """Return what is wrong with a value for one branch, apart from the rest."""
        found: list[Found] = []
        self.value(value, schema, place, found, depth)
        return found

    def _is_one(self, value: Any, kinds: Any) -> bool:
        if isinstance(kinds, str):
            tested = TYPES.get(kinds)
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


TYPES: dict[str, Callable[[Any], bool]] = {
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
