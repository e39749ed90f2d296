"""The documentation of a function, read from its docstring: Google, numpy, Sphinx or plain."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import docstring_parser


@dataclass(frozen=True, slots=True)
class Documentation:
    """The words about a function, and about each of its parameters."""

    description: str
    parameters: Mapping[str, str]


def documentation_of(function: Callable[..., Any]) -> Documentation:
    """Return what the docstring says. What it raises is for readers of the source: left out."""
    whole = inspect.getdoc(function) or ""
    try:
        found = docstring_parser.parse(whole)
    except docstring_parser.ParseError:
        return Documentation(whole, {})
    parts = [found.short_description, found.long_description]
    if found.returns is not None and found.returns.description:
        parts.append(f"Returns: {found.returns.description}")
    described = {each.arg_name: each.description for each in found.params if each.description}
    return Documentation("\n\n".join(filter(None, parts)), described)
