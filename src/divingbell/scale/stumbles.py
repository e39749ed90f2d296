"""Stumbles on their way from a node to the front, which makes hints of them.

A hint names tools and packages that are there, and a node does not know the tools. So where a hint
would stand in a failure it puts what was stumbled over, and the front makes the hint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from divingbell.command import CommandResult
from divingbell.models import Result
from divingbell.session.hints import Hints, stumble_in


@dataclass(frozen=True, slots=True)
class Stumbles(Hints):
    """The side of the node: names the stumble where the hint would stand."""

    def hint_in(self, header: Mapping[str, Any] | None, user: str) -> str:
        stumble = stumble_in(header)
        return "" if stumble is None else " ".join(stumble)


def header_of(result: Result | CommandResult) -> tuple[Mapping[str, Any], Any]:
    """Return the stumble of a result as the interpreter says it, and the result without it."""
    if result.error is None or not result.error.hint:
        return {}, result
    kind, _, name = result.error.hint.partition(" ")
    bare = replace(result, error=replace(result.error, hint=""))
    return {"error": {"stumble": [kind, name]}}, bare
