"""Links: how the answer to one operation leads to others, as OpenAPI has it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from divingbell.surfaces.http.operations import Operation, parameters


@dataclass(frozen=True)
class Lead:
    """What an answer names: something below a path, by these parts of the path."""

    below: str
    parts: Mapping[str, str]
    """By their name in the path, where they stand in the answer or the request."""


def _body(place: str) -> str:
    return f"$response.body#/{place}"


_FILE = "/sessions/{id}/files/{path:path}"
LEADS: Mapping[tuple[str, str], tuple[Lead, ...]] = {
    ("POST", "/sessions"): (Lead("/sessions/{id}", {"id": _body("id")}),),
    ("GET", "/sessions"): (Lead("/sessions/{id}", {"id": _body("items/0/id")}),),
    ("POST", "/sessions/{id}/execute"): (
        Lead("/executions/{id}", {"id": _body("execution")}),
        Lead("/sessions/{id}", {"id": _body("session")}),
    ),
    ("POST", "/execute"): (Lead("/executions/{id}", {"id": _body("execution")}),),
    ("GET", "/executions"): (Lead("/executions/{id}", {"id": _body("items/0/id")}),),
    ("PUT", _FILE): (Lead(_FILE, {"id": "$request.path.id", "path": _body("path")}),),
    ("GET", "/sessions/{id}/files"): (
        Lead(_FILE, {"id": "$request.path.id", "path": _body("items/0/path")}),
    ),
    ("GET", "/approvals"): (Lead("/approvals/{id}", {"id": _body("items/0/id")}),),
    ("GET", "/skills"): (Lead("/skills/{name}", {"name": _body("items/0/name")}),),
    ("POST", "/conversations"): (Lead("/conversations/{id}", {"id": _body("id")}),),
    ("GET", "/conversations"): (Lead("/conversations/{id}", {"id": _body("items/0/id")}),),
}
"""By method and path of what was asked for."""


def links(operation: Operation, others: Iterable[Operation]) -> dict[str, Any]:
    """Return the links of an operation's answer: to all others that it has all parts for."""
    found: dict[str, Any] = {}
    for lead in LEADS.get((operation.method, operation.path), ()):
        for other in others:
            is_below = other.path == lead.below or other.path.startswith(f"{lead.below}/")
            if is_below and set(parameters(other.path)) <= lead.parts.keys():
                told = {"operationId": other.id, "parameters": dict(lead.parts)}
                found.setdefault(other.id, told)
    return found
