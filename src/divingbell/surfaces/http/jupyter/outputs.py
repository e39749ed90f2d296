"""Outputs: what a cell shows while it runs, as the messages in which Jupyter has it."""

import base64
from collections.abc import Iterable
from typing import Any

import msgspec

from divingbell.models import Event, Failure, Output, Result

Shown = tuple[str, dict[str, Any]]
"""The kind of a message, and its content."""


def shown(event: Event) -> Shown | None:
    """Return the kind and content of the message that shows an event; None for one that is not
    shown."""
    if event.type in ("stdout", "stderr"):
        return stream(event.type, event.text)
    if event.type == "clear":
        return "clear_output", {"wait": False}
    if event.type == "display":
        kind = "update_display_data" if event.update else "display_data"
        return kind, bundle(event.outputs) | _transient(event.display_id)
    if event.type == "result":
        return "execute_result", bundle(event.outputs) | {"execution_count": event.cell}
    if event.type == "progress":
        return stream("stderr", f"[{event.tool}{_how_far(event)} {event.text}".rstrip() + "]\n")
    if event.type in ("log", "notice"):
        speaker = f"{event.tool}: " if event.type == "log" else ""
        return stream("stderr", f"[{speaker}{event.text}]\n")
    return None


def stream(name: str, text: str) -> Shown:
    """Return the message that shows text."""
    return "stream", {"name": name, "text": text}


def notes(result: Result) -> Shown | None:
    """Return the message that shows what Divingbell has to say about a result, if there is any."""
    text = "".join(f"[{note}]\n" for note in result.notes)
    return stream("stderr", text) if text else None


def error(ename: str, evalue: str, traceback: str = "") -> dict[str, Any]:
    """Return an error as both the message that shows it and the reply have it."""
    lines = (traceback or f"{ename}: {evalue}").splitlines()
    return {"ename": ename, "evalue": evalue, "traceback": lines}


def error_of(result: Result) -> dict[str, Any] | None:
    """Return the error of a cell that did not end well."""
    if result.status == "ok":
        return None
    if result.status == "cancelled":
        # Notebooks know it by this name.
        told = "" if result.error is None else str(result.error)
        return error("KeyboardInterrupt", "the cell was interrupted", told)
    failure = result.error or Failure(result.status, "the cell did not end well")
    return error(failure.type, failure.message, str(failure))


def bundle(outputs: Iterable[Output]) -> dict[str, Any]:
    """Return the forms of one display by their types."""
    data = {output.type: _form(output) for output in outputs}
    return {"data": data, "metadata": {}}


def _form(output: Output) -> Any:
    """Return one form: bytes as base64, JSON as JSON, else the text."""
    if isinstance(output.data, bytes):
        return base64.b64encode(output.data).decode()
    if output.type == "application/json" or output.type.endswith("+json"):
        return _as_json(output.data)
    return output.data


def _as_json(text: str) -> Any:
    """Return JSON as it is, to be passed on without being built; else the text."""
    try:
        # What is skipped is checked, and nothing is made of it.
        return msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return text


def _transient(display_id: str | None) -> dict[str, Any]:
    return {"transient": {} if display_id is None else {"display_id": display_id}}


def _how_far(event: Event) -> str:
    if event.progress is None:
        return ""
    total = "" if event.total is None else f"/{event.total:g}"
    return f" {event.progress:g}{total}"
