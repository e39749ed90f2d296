"""What schemathesis is told about our API; it is loaded in schemathesis' own environment."""

from typing import Any

import schemathesis  # type: ignore[import-not-found]


def whole(value: Any) -> Any:
    """Write 44.0 as 44: the first is an integer for JSON Schema, and none for a strict parser."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    if isinstance(value, list):
        return [whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    return whole(body)
