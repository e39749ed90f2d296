"""The body of the SKILL.md of a skill that code has saved: how it is called, and an example."""

import re
from collections.abc import Iterable

from divingbell.skills.checks import Reading

_FENCE = "~~~~"
_EXAMPLE = re.compile(rf"^## Example\n\n{_FENCE}python\n(.*?)\n{_FENCE}$", re.DOTALL | re.MULTILINE)
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
    found = _EXAMPLE.search(text)
    return found[1] if found else ""


def _code(source: str) -> str:
    # A line that ends the block would make the rest of the code text, and other text code.
    inert = _FENCES.sub(f" {_FENCE}", source)
    return f"{_FENCE}python\n{inert}\n{_FENCE}"
