"""What a model reads about Divingbell, in tokens."""

import hashlib

from divingbell.surfaces.mcp import definitions
from divingbell.telemetry import tokens

BUDGET = 500
"""Tokens; the promise is 1,200."""


def test_the_whole_surface_fits_its_budget() -> None:
    count = tokens.measure(definitions.as_read())
    assert not count.estimated
    assert count.tokens <= BUDGET


def test_the_surface_is_the_same_in_every_process() -> None:
    """Caches keep it only as long as no byte changes: whoever changes it, does so on purpose."""
    digest = hashlib.sha256(definitions.as_read().encode()).hexdigest()
    assert digest.startswith("23232e963748c4a6")


def test_every_tool_and_parameter_is_described_or_speaks_for_itself() -> None:
    for tool in definitions.TOOLS:
        assert tool.description
        assert set(tool.input_schema.get("required", [])) <= set(tool.input_schema["properties"])
