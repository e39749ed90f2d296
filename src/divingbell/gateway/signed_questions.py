"""The signature on questions to a person: each says which server asks.

The client shows one asker, Divingbell, and a server can put anything into its question: words that
speak in our name, lines that look like a question of ours, fields with titles such as "Divingbell
needs your password". So each part that a person reads says whose it is.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from divingbell import text
from divingbell.settings.addresses import is_web

if TYPE_CHECKING:
    import mcp_types

MAX_QUESTION = 4000
MAX_FIELD = 1000
MAX_FORM = 200_000
"""Characters of JSON."""
_FORM = ("type", "properties", "required")
"""The parts of a form that are shown; a title or words of its own it has not."""


def signed(
    params: "mcp_types.ElicitRequestParams", server: str
) -> "mcp_types.ElicitRequestParams | None":
    """Return the question as a person may see it; None if it can't be shown.

    It can't where it leads to an address that is none of the web, or that hides something, and
    where its form is longer than anybody reads.
    """
    lines = text.visible(params.message, MAX_QUESTION).split("\n")
    changes: dict[str, Any] = {"message": f"{server} asks: " + "\n> ".join(lines)}
    url = getattr(params, "url", None)
    if url is not None and not (is_web(url) and url.isascii()):
        return None
    form = getattr(params, "requested_schema", None)
    if form is not None:
        if len(json.dumps(form)) > MAX_FORM:
            return None
        changes["requested_schema"] = _form(text.everywhere(form, MAX_FIELD), server)
    return params.model_copy(update=changes)


def _form(form: Mapping[str, Any], server: str) -> dict[str, Any]:
    shown = {key: form[key] for key in _FORM if key in form}
    fields = form.get("properties")
    if isinstance(fields, Mapping):
        shown["properties"] = {name: _field(name, fields[name], server) for name in fields}
    return shown


def _field(name: str, field: Any, server: str) -> Any:
    if not isinstance(field, Mapping):
        return field
    title = text.one_line(str(field.get("title") or name), MAX_FIELD)
    return {**field, "title": f"{server}: {title}"}
