"""One tool of one upstream server, as the rest of the gateway sees it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from divingbell import text


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as its server describes it. All of it is text of others: data, not advice."""

    server: str
    """The server's name in the settings: letters, digits, `-` and `_`."""
    name: str
    """The tool's name as the server has it. It may be anything."""
    package: str
    """The server as a Python identifier; unique among servers."""
    function: str
    """The tool as a Python identifier; unique within the server."""
    description: str = ""
    """Cleaned of what can't be seen."""
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    """Hints of the server (readOnlyHint …). Hints are no authority."""

    @property
    def full_name(self) -> str:
        """`server.tool`, the name that searches show and calls take.

        Of a tool whose name hides something it is the Python name.
        """
        plain = self.name.isprintable() and not text.is_hiding(self.name)
        return f"{self.server}.{self.name if plain else self.function}"

    @property
    def wraps_result(self) -> bool:
        """Whether its result is a plain value that the server's SDK has put into an object.

        The protocol knows only objects; Python's SDKs put a list, a number or a text under
        `result` in an object that no one has asked for, and mark it in the schema.
        """
        schema = self.output_schema or {}
        properties = schema.get("properties")
        return (
            isinstance(properties, Mapping)
            and list(properties) == ["result"]
            and (
                schema.get("x-fastmcp-wrap-result") is True
                or schema.get("title") == f"{self.name}Output"
            )
        )

    @property
    def result_schema(self) -> Mapping[str, Any] | None:
        """The schema of the value that code gets."""
        if not self.wraps_result or self.output_schema is None:
            return self.output_schema
        inner = self.output_schema["properties"]["result"]
        if not isinstance(inner, Mapping):
            return None
        # What it refers to stands in the outer one.
        shared = {key: self.output_schema[key] for key in _SHARED if key in self.output_schema}
        return {**shared, **inner}


_SHARED = ("$defs", "definitions")
