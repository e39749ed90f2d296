"""The body of the SKILL.md of a skill that code has saved: how it is called, and an example."""

import re
from collections.abc import Iterable

from divingbell.skills.checks import Reading

_FENCE = "~~~~"
_BEGINNING = re.compile(rf"^## Example\n\n{_FENCE}python\n", re.MULTILINE)
_END = re.compile(rf"\n{_FENCE}$", re.MULTILINE)
_FENCES = re.compile(rf"^{_FENCE}", re.MULTILINE)


def body(reading: Reading, tools: Iterable[str]) -> str:
    """Return Markdown that says how a skill is used."""
    module, called = reading.module, reading.signature or reading.module
    parts = [
        f"# {module}",
        _FENCES.sub(f" {_FENCE}", reading.docstring),
        "## Parameters",
        _code(f"from skills import {module}\n\n{called}"),
        "## Example",
        _code(f"from skills import {module}\n\n{reading.example}"),
    ]
    if named := sorted(tools):
        parts += ["## Tools", "\n".join(f"- `{name}`" for name in named)]
    return "\n\n".join(parts)


def example_in(text: str) -> str:
    """Return the example in such a body; empty where there is none."""
    # One after the other: where the first has no end, those that begin after it have none either.
    begins = _BEGINNING.search(text)
    ends = _END.search(text, begins.end()) if begins else None
    return text[begins.end() : ends.start()] if begins and ends else ""


def _code(source: str) -> str:
    # A line that ends the block would make the rest of the code text, and other text code.
    inert = _FENCES.sub(f" {_FENCE}", source)
    return f"{_FENCE}python\n{inert}\n{_FENCE}"
