"""Personal columns: those of a table whose values are to be learned, by the rules on fields.

A gateway that hides personal data says in a file in the spool which fields hold some. The dataset
server has its sealed session write down the values of such columns, each once, and leaves them
beside the table. For the gateway they are data to be learned, as any result.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from divingbell.border.privacy.fields import Fields
from divingbell.gateway.spooled_tables import RULES

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
        fields = self._fields.of(f"{self._server}.{tool}")
        plain, nested = [], []
        for column in columns:
            name, kind = str(column.get("name")), str(column.get("type"))
            field = fields.field(name)
            if kind.endswith("]") or kind.startswith(_NESTED):
                nested.append(name)  # the names of fields are within it
            elif field is not None and field.kind:
                plain.append(name)
        if not plain and not nested:
            return None
        return {
            "op": "values",
            "source": list(source),
            "columns": plain[:MOST_COLUMNS],
            "nested": nested[:MOST_COLUMNS],
            "most": MOST_VALUES,
        }
