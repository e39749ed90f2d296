"""A cell of a notebook: run in the session, told as it goes, answered at its end."""

import contextlib
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from divingbell.errors import DivingbellError
from divingbell.models import Result
from divingbell.session.base import SessionHandle
from divingbell.shares import weight
from divingbell.surfaces.http.jupyter import outputs, replies

Show = Callable[[str, bytes], None]
"""Publishes a message of this kind, and with this content as JSON."""
MAX_EXPRESSIONS = 100


class CellRequest(msgspec.Struct):
    """A request to run code."""

    code: str
    silent: bool = False
    stop_on_error: bool = True
    user_expressions: Annotated[dict[str, str], msgspec.Meta(max_length=MAX_EXPRESSIONS)] | None = (
        None
    )


async def run_cell(session: SessionHandle, asked: CellRequest, show: Show) -> dict[str, Any]:
    """Run a cell, show what it shows, and return the content of the reply."""
    count = session.cells + 1
    if not asked.silent:
        await _show(("execute_input", {"code": asked.code, "execution_count": count}), show)
    if not asked.code.strip():
        return _reply(asked, session.cells)
    try:
        result = await _shown(session, asked, show)
    except DivingbellError as error:
        return await failed(type(error).__name__, str(error), count, show)
    await _show(outputs.notes(result), show)
    told = outputs.error_of(result)
    return _reply(asked, result.cell) if told is None else await _failed(told, result.cell, show)


async def failed(ename: str, evalue: str, count: int, show: Show) -> dict[str, Any]:
    """Show that a cell did not run, and why; return the content of the reply."""
    return await _failed(outputs.error(ename, evalue), count, show)


async def _failed(error: dict[str, Any], count: int, show: Show) -> dict[str, Any]:
    await _show(("error", error), show)
    return {"status": "error", "execution_count": count, **error}


async def _shown(session: SessionHandle, asked: CellRequest, show: Show) -> Result:
    result: Result | None = None
    async with contextlib.aclosing(session.stream(asked.code)) as events:
        async for event in events:
            if event.type == "done":
                result = event.result
            elif not (asked.silent and event.type == "result"):
                await _show(outputs.shown(event), show)
    assert result is not None
    return result


async def _show(message: outputs.Shown | None, show: Show) -> None:
    """Publish a message, if there is one. To write a large one as JSON takes a while."""
    if message is not None:
        kind, content = message
        show(kind, await weight.beside(msgspec.json.encode, content))


def _reply(asked: CellRequest, count: int) -> dict[str, Any]:
    refusal = replies.unsupported("Divingbell does not evaluate user_expressions: run them as code")
    told = {name: refusal for name in asked.user_expressions or {}}
    return {"status": "ok", "execution_count": count, "payload": [], "user_expressions": told}
