"""The tool execute_python of an agent: code for its session."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from pydantic_core import from_json

from divingbell.agent.cutting import cut
from divingbell.agent.events import AgentEvent, CellEnded, CellEvent, CellStarted
from divingbell.agent.history import Answered, Call, Image
from divingbell.agent.model import ModelTool
from divingbell.agent.tools import BadArguments
from divingbell.errors import DivingbellError
from divingbell.gateway.context import Asker
from divingbell.models import Result, with_line_ended
from divingbell.session.base import SessionHandle
from divingbell_inside import layout

NAME = "execute_python"
DESCRIPTION = (
    "Run Python in a sealed, persistent session. Returns what is printed, the last expression and "
    "plots. Variables, imports and files in /workspace stay. Top-level await works."
)
MAX_IMAGES = 8
MAX_IMAGE_BYTES = 4 << 20
SILENT = "[no output: print what you want to see]"
Turn = Callable[[], AbstractAsyncContextManager[None]]
DEFINITION = ModelTool(
    NAME,
    DESCRIPTION,
    {
        "type": "object",
        "properties": {"code": {"type": "string"}},
        "required": ["code"],
    },
)


class CodeTool:
    """Runs what the model wrote, in one session."""

    definition = DEFINITION

    def __init__(self, session: SessionHandle, most_tokens: int, asker: Asker | None) -> None:
        self._session = session
        self._most = most_tokens
        self._asker = asker
        self.turn: Turn = contextlib.nullcontext
        """What each cell waits for before it runs."""
        self.failed_in_a_row = 0

    async def run(
        self, call: Call, arguments: dict[str, Any]
    ) -> AsyncGenerator[AgentEvent | Answered]:
        code = arguments.get("code")
        if not isinstance(code, str):
            raise BadArguments(f"{NAME} needs `code`, a text, so nothing was run")
        yield CellStarted(call.id, code)
        result: Result | None = None
        stream = self._session.stream(code, asker=self._asker)
        async with self.turn(), contextlib.aclosing(stream) as events:
            async for event in events:
                if event.type == "done":
                    result = event.result
                else:
                    yield CellEvent(call.id, event)
        assert result is not None
        self.failed_in_a_row = 0 if result.status == "ok" else self.failed_in_a_row + 1
        yield CellEnded(call.id, result)
        yield Answered(call, await self._fitted(result), images_of(result))

    async def _fitted(self, result: Result) -> str:
        """Return a result in the tokens that the model is shown."""
        text = as_read(result)
        short = await cut(text, self._most)
        if short is None:
            return text
        path = f"{layout.OUTPUTS}/cell-{result.cell}.txt"
        if any(path in note for note in result.notes):  # it was too much for the session as well
            return short
        try:
            await self._session.files.put(path.removeprefix(f"{layout.WORKSPACE}/"), text)
        except DivingbellError as error:
            return f"{short}\n[all of it could not be kept: {error}]"
        return f"{short}\n[all of it is in {path}]"


def code_so_far(arguments: str) -> str | None:
    """Return the code in the arguments of a call that is still being written."""
    try:
        found = from_json(arguments, allow_partial="trailing-strings")
    except ValueError:
        return None
    code = found.get("code") if isinstance(found, dict) else None
    return code if isinstance(code, str) else None


def as_read(result: Result) -> str:
    """Return a result as a model reads it."""
    told = [] if result.error is None else [str(result.error)]
    told += [f"[{note}]" for note in result.notes]
    text = with_line_ended(result.text) + "\n".join(told)
    if result.status not in ("ok", "error"):
        text = with_line_ended(text) + f"[{result.status}]"
    return text or SILENT


def images_of(result: Result) -> tuple[Image, ...]:
    """Return the images that a cell has shown, as many as are worth passing on."""
    found = [
        Image(output.type, output.data)
        for output in result.outputs
        if output.type in layout.IMAGES
        and isinstance(output.data, bytes)
        and len(output.data) <= MAX_IMAGE_BYTES
    ]
    return tuple(found[:MAX_IMAGES])
