"""execute_python: a cell, told as it runs, and its result in the forms of MCP."""

import base64
import contextlib
import json
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import mcp_types as types

from divingbell.errors import InvalidInput
from divingbell.models import Event, Output, Result
from divingbell.session import Session
from divingbell.surfaces.mcp.person import Person

MAX_TIMEOUT = 3600.0
PAUSE = 0.1
"""Seconds between two messages of progress: a cell may print thousands of lines."""
MAX_MESSAGE = 500
MAX_VALUE = 4000
"""Of the last expression as data; its text is in the output anyway."""
MAX_IMAGES = 20
MAX_IMAGE_BYTES = 5 << 20
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
SILENT = "[no output: print what you want to see]"


async def execute(session: Session, arguments: Mapping[str, Any], person: Person) -> Result:
    """Run the code that the arguments hold, telling the person how it goes.

    Raises:
        InvalidInput: the arguments can't be used.
        SessionClosed, SandboxUnavailable: see `Session.run`.
    """
    code, timeout = arguments.get("code"), arguments.get("timeout")
    if not isinstance(code, str):
        raise InvalidInput("execute_python needs `code`, a text")
    if timeout is not None:
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not is_number or not math.isfinite(timeout) or not 0 < timeout <= MAX_TIMEOUT:
            raise InvalidInput(f"timeout must be seconds, more than 0 and at most {MAX_TIMEOUT:g}")
    teller = _Teller(person)
    asker = person if person.can_be_asked else None
    result: Result | None = None
    async with contextlib.aclosing(session.stream(code, timeout=timeout, asker=asker)) as events:  # type: ignore[type-var]
        async for event in events:
            if event.type == "done":
                result = event.result
            else:
                await teller.tell(event)
    assert result is not None
    return result


class _Teller:
    """Passes output on as messages of progress, not more often than anybody can read."""

    def __init__(self, person: Person) -> None:
        self._person = person
        self._count = 0
        self._waiting = ""
        self._last = 0.0

    async def tell(self, event: Event) -> None:
        if event.type in ("stdout", "stderr"):
            self._waiting = (self._waiting + event.text)[-MAX_MESSAGE:]
            await self._progress()
        elif event.type == "progress":
            total = f"/{event.total:g}" if event.total is not None else ""
            done = f" {event.progress:g}{total}" if event.progress is not None else ""
            self._waiting += f"{event.tool}{done} {event.text}".rstrip()[:MAX_MESSAGE] + "\n"
            await self._progress()
        elif event.type in ("log", "notice"):
            source = event.tool if event.type == "log" else None
            await self._person.log(
                types.LoggingMessageNotificationParams(
                    level="info", logger=source, data=event.text[:MAX_MESSAGE]
                )
            )

    async def _progress(self) -> None:
        now = time.monotonic()
        text = self._waiting.strip()
        if text and now - self._last >= PAUSE:
            self._last, self._waiting = now, ""
            self._count += 1
            await self._person.progress(self._count, None, text[-MAX_MESSAGE:])


# The result


def shown(result: Result, session_id: str, note: str | None = None) -> types.CallToolResult:
    """Return a result as MCP has it: text and images to read, and the same as data."""
    content = _content(result)
    notes = [*result.notes, *([note] if note else ())]
    told = [f"[{note}]" for note in notes]
    failure = None if result.error is None else str(result.error)
    if failure is not None:
        told.insert(0, failure)
    if told or not content:
        content.append(types.TextContent(text="\n".join(told) or SILENT))
    output = "".join(item.text for item in content if isinstance(item, types.TextContent))
    structured: dict[str, Any] = {
        "status": result.status,
        "session_id": session_id,
        "output": output,
    }
    if result.value is not None and _is_small(result.value):
        structured["value"] = result.value
    if result.error is not None:
        structured["error"] = {"type": result.error.type, "message": result.error.message}
    if result.limit is not None:
        structured["limit"] = result.limit
    if result.state != "kept":
        structured["state"] = result.state
    if notes:
        structured["notes"] = notes
    if result.calls:
        structured["calls"] = dict(Counter(call.name for call in result.calls))
    meta: dict[str, Any] = {"divingbell/usage": asdict(result.usage)}
    if result.ledger is not None:
        meta["divingbell/ledger"] = result.ledger.to_dict()
    return types.CallToolResult(
        content=content,
        structured_content=structured,
        is_error=result.status != "ok",
        _meta=meta,
    )


def _content(result: Result) -> list[types.ContentBlock]:
    content: list[types.ContentBlock] = []
    text, images = "", 0
    for at, output in enumerate(result.outputs):
        if output.type == "text/plain":
            if not _stands_for_image(result.outputs, at):
                text += _line(output)
            continue
        if output.type not in IMAGES or not isinstance(output.data, bytes):
            continue
        images += 1
        if images > MAX_IMAGES or len(output.data) > MAX_IMAGE_BYTES:
            text += f"[{output.type}, {len(output.data):,} bytes: too much to show]\n"
            continue
        if text:
            content.append(types.TextContent(text=text))
            text = ""
        data = base64.b64encode(output.data).decode()
        content.append(types.ImageContent(data=data, mime_type=output.type))
    if text:
        content.append(types.TextContent(text=text))
    return content


def _line(output: Output) -> str:
    text = str(output.data)
    return text if output.name in ("stdout", "stderr") else text.rstrip("\n") + "\n"


def _stands_for_image(outputs: tuple[Output, ...], at: int) -> bool:
    """Whether it is the `<Figure size …>` of the image beside it, which says nothing."""
    text = str(outputs[at].data).strip()
    beside = outputs[max(at - 1, 0) : at + 2]
    is_label = text.startswith("<Figure size ") and text.endswith(" Axes>")
    return is_label and any(output.type in IMAGES for output in beside)


def _is_small(value: Any) -> bool:
    try:
        return len(json.dumps(value)) <= MAX_VALUE
    except (TypeError, ValueError, RecursionError):
        return False
