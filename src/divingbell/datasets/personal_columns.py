"""Personal columns: those of a table whose values are to be learned, by the rules on fields.

A gateway that hides personal data says in a file in the spool which fields hold some. The dataset
server has its sealed session write down the values of such columns, each once, and leaves them
beside the table. For the gateway they are data to be learned, as any result.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from divingbell import logs
from divingbell.border.privacy import shapes
from divingbell.border.privacy.fields import Fields
from divingbell.border.privacy.kinds import KINDS
from divingbell.gateway.spooled_tables import RULES

log = logs.logger("divingbell")

MOST_COLUMNS = 32
MOST_VALUES = 50_000
"""Values of one table, as many as are learned from one server."""
_NESTED = ("STRUCT", "MAP", "UNION", "JSON")


class PersonalColumns:
    """Says which columns of a table may hold personal data."""

    def __init__(self, server: str, fields: Fields) -> None:
        self._server = server
        self._fields = fields

    @classmethod
    def told_in(cls, spool: Path) -> "PersonalColumns | None":
        """Return what the gateway has said; None where it hides nothing."""
        try:
            told = json.loads((spool / RULES).read_bytes())
        except FileNotFoundError:
            return None
        return cls(told["server"], Fields(told["fields"], frozenset(told["kinds"])))

    def request(
        self, tool: str, columns: Sequence[Mapping[str, Any]], source: Sequence[str | int | None]
    ) -> dict[str, Any] | None:
        """Return what to ask a session for, about the table that a tool gives; None if nothing."""
        plain, nested = self._personal(tool, columns)
        if not plain and not nested:
            return None
        if left_out := len(plain[MOST_COLUMNS:]) + len(nested[MOST_COLUMNS:]):
            log.warning(
                "a table has %d columns more that may be personal than are learned from (%d): "
                "what they say is shown",
                left_out,
                MOST_COLUMNS,
            )
        return {
            "op": "values",
            "source": list(source),
            "columns": plain[:MOST_COLUMNS],
            "nested": nested[:MOST_COLUMNS],
            "most": MOST_VALUES,
        }

    def without_examples(
        self, tool: str, columns: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return columns as a tool describes them, without values of those that are personal."""
        plain, nested = self._personal(tool, columns)
        hidden = {*plain, *nested}
        return [
            {**column, "examples": []} if str(column.get("name")) in hidden else column
            for column in columns
        ]

    def _personal(
        self, tool: str, columns: Sequence[Mapping[str, Any]]
    ) -> tuple[list[str], list[str]]:
        """Return the names of personal columns, and of those that have fields within.

        Those whose values nobody knows by their shape come first: for others there may be no room.
        """
        fields = self._fields.of(f"{self._server}.{tool}")
        plain: list[tuple[bool, str]] = []
        nested = []
        for column in columns:
            name, kind = str(column.get("name")), str(column.get("type"))
            field = fields.field(name)
            if kind.endswith("]") or kind.startswith(_NESTED):
                nested.append(name)  # the names of fields are within it
            elif field is not None and field.kind:
                has_shape = field.kind in KINDS and shapes.of_kinds(frozenset({field.kind}))
                plain.append((bool(has_shape), name))
        return [name for _, name in sorted(plain, key=lambda each: each[0])], nested
