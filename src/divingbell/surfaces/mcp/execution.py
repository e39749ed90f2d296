"""The tool execute_python: a cell, its progress as it runs, and its result in the forms of MCP."""

import base64
import contextlib
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from itertools import groupby
from typing import Any

import mcp_types as types

from divingbell.errors import DivingbellError, InvalidInput, RateExceeded
from divingbell.models import Event, Output, Result, as_text, with_line_ended
from divingbell.session.base import SessionHandle
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.workspace import uri_of
from divingbell_inside import layout, values

MAX_TIMEOUT = 3600.0
PAUSE = 0.1
"""Seconds between two messages of progress: a cell may print thousands of lines."""
MAX_MESSAGE = 500
MAX_VALUE = 4000
"""Of the last expression as data; its text is in the output anyway."""
MAX_IMAGES = 20
MAX_IMAGE_BYTES = 5 << 20
SILENT = "[no output: print what you want to see]"


async def execute(session: SessionHandle, arguments: Mapping[str, Any], teller: "Teller") -> Result:
    """Run the code that the arguments hold, and tell the client how it goes.

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
    asker = teller.channel if teller.channel.can_be_asked else None
    result: Result | None = None
    async with contextlib.aclosing(session.stream(code, timeout=timeout, asker=asker)) as events:
        async for event in events:
            if event.type == "done":
                result = event.result
            else:
                await teller.tell(event)
    assert result is not None
    return result


Turn = Callable[[str, str], AbstractAsyncContextManager[None]]
"""Has a cell of a user, in a session, wait for its turn, or raises CapacityError."""


def at_once(user: str, session: str) -> AbstractAsyncContextManager[None]:
    """Have a cell run at once: a process that is one client's own has nobody who waits."""
    return contextlib.nullcontext()


class Teller:
    """Tells a client of the progress of one call: what it waits for, then what its cell prints."""

    def __init__(self, channel: ClientChannel) -> None:
        self.channel = channel
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
            await self.channel.log(
                types.LoggingMessageNotificationParams(
                    level="info", logger=source, data=event.text[:MAX_MESSAGE]
                )
            )

    async def say(self, text: str) -> None:
        """Tell what the call waits for before its cell runs."""
        self._count += 1
        await self.channel.progress(self._count, None, text[:MAX_MESSAGE])

    async def _progress(self) -> None:
        """Pass output on, not more often than anybody can read."""
        now = time.monotonic()
        text = self._waiting.strip()
        if text and now - self._last >= PAUSE:
            self._last, self._waiting = now, ""
            self._count += 1
            await self.channel.progress(self._count, None, text[-MAX_MESSAGE:])


# The result


def as_refusal(error: DivingbellError) -> types.CallToolResult:
    """Return what is told of code that did not run: text to read, and the same as data."""
    told: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, RateExceeded):
        told["retry_after"] = max(1, math.ceil(error.retry_after))
    return types.CallToolResult(
        content=[types.TextContent(text=str(error))],
        structured_content={"status": "error", "output": str(error), "error": told},
        is_error=True,
    )


def as_tool_result(
    result: Result, session_id: str, note: str | None = None
) -> types.CallToolResult:
    """Return a result as MCP has it: text and images to read, and the same as data."""
    seen = [output for output in result.outputs if _is_seen(output)][:MAX_IMAGES]
    content = _content(result, seen)
    notes = [*result.notes, *([note] if note else ())]
    told = [f"[{note}]" for note in notes]
    failure = None if result.error is None else str(result.error)
    if failure is not None:
        told.insert(0, failure)
    if told or not content:
        content.append(types.TextContent(text="\n".join(told) or SILENT))
    output = with_line_ended(result.text) + "\n".join(told)
    structured: dict[str, Any] = {
        "status": result.status,
        "session_id": session_id,
        "output": output or SILENT,
    }
    if result.value_kind == "data" and (small := _as_small_data(result.value)) is not None:
        structured["value"] = small
    if seen:
        structured["images"] = [_mention(image, session_id) for image in seen]
    kept = [output for output in result.outputs if output.path and not _is_image(output)]
    if kept:
        structured["displays"] = [_mention(output, session_id) for output in kept]
    if result.error is not None:
        structured["error"] = {"type": result.error.type, "message": result.error.message}
    if result.limit is not None:
        structured["limit"] = result.limit
    if result.state != "kept":
        structured["state"] = result.state
    if notes:
        structured["notes"] = notes
    if made := Counter(call.name for call in result.calls if call.made):
        structured["calls"] = dict(made)
    meta: dict[str, Any] = {"divingbell/usage": asdict(result.usage)}
    if result.ledger is not None:
        meta["divingbell/ledger"] = result.ledger.to_dict()
    return types.CallToolResult(
        content=content,
        structured_content=structured,
        is_error=result.status != "ok",
        _meta=meta,
    )


def _content(result: Result, seen: list[Output]) -> list[types.ContentBlock]:
    """Return text and images in their order; what is not seen is a line of the text."""
    content: list[types.ContentBlock] = []
    images = {id(output) for output in seen}
    for is_image, outputs in groupby(result.outputs, lambda output: id(output) in images):
        if is_image:
            content += [_image(output) for output in outputs]
        elif text := with_line_ended(as_text(outputs)):
            content.append(types.TextContent(text=text))
    return content


def _is_image(output: Output) -> bool:
    return output.type in layout.IMAGES and isinstance(output.data, bytes)


def _is_seen(output: Output) -> bool:
    return _is_image(output) and len(output.data) <= MAX_IMAGE_BYTES


def _image(output: Output) -> types.ImageContent:
    assert isinstance(output.data, bytes)
    return types.ImageContent(data=base64.b64encode(output.data).decode(), mime_type=output.type)


def _mention(output: Output, session_id: str) -> dict[str, Any]:
    """Describe an image or a page for those who read the structured content only."""
    mention: dict[str, Any] = {"type": output.type, "bytes": len(output.data)}
    if output.path is not None:
        path = output.path.removeprefix(layout.WORKSPACE + "/")
        mention |= {"path": output.path, "uri": uri_of(session_id, path)}
    return mention


def _as_small_data(value: Any) -> Any:
    """Return a value in its JSON form; None for one that is too long for a model."""
    try:
        data = values.encode(value, items=MAX_VALUE, text=MAX_VALUE)
    except values.NotPlain:
        return None
    return data if len(json.dumps(data)) <= MAX_VALUE else None
