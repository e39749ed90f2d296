"""A model that says what it was given to say: for demonstrations, tests and measurements.

Everything around it is real: the loop, the sandbox, the tools.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from divingbell.agent.context import Context, tokens_of_entry
from divingbell.agent.history import Call, Replied
from divingbell.agent.model import (
    CallPiece,
    ModelFailed,
    ModelRequest,
    ModelUsage,
    Piece,
    Reply,
    TextPiece,
    ThinkingPiece,
)
from divingbell.journal import tokens

PIECE = 12
"""Characters that come at once."""


@dataclass(frozen=True, slots=True)
class Says:
    """One reply of the script: words, and code to be run after them."""

    text: str = ""
    code: str | None = None
    calls: tuple[Call, ...] = ()
    """Calls of other tools."""
    thinking: str = ""


Line = Says | Callable[[ModelRequest], Says]
"""A reply, or what makes one of the request."""


@dataclass
class ScriptedModel:
    """Says the lines of a script one after the other, whatever it is asked."""

    lines: Iterable[Line]
    name: str = "scripted:script"
    window: int | None = 200_000
    sees_images: bool = True
    calls_tools: bool = True
    delay: float = 0.0
    """Seconds before each piece, for those who look on."""
    requests: list[ModelRequest] = field(default_factory=list)
    """What it was sent."""

    def __post_init__(self) -> None:
        self._rest = iter(self.lines)
        self._context = Context(self.window)
        self._counted: tuple[ModelRequest, int] | None = None
        """A request, and the tokens of what it has besides the conversation."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """Yield the next line of the script in small pieces.

        Raises:
            ModelFailed: the script has ended.
        """
        self.requests.append(request)
        line = next(self._rest, None)
        if line is None:
            raise ModelFailed("the script has no more lines", "reply")
        says = line if isinstance(line, Says) else line(request)
        calls = says.calls
        if says.code is not None:
            arguments = json.dumps({"code": says.code})
            calls = (*calls, Call(f"call_{len(self.requests)}", "execute_python", arguments))
        for piece in _pieces(says.thinking):
            await asyncio.sleep(self.delay)
            yield ThinkingPiece(piece)
        for piece in _pieces(says.text):
            await asyncio.sleep(self.delay)
            yield TextPiece(piece)
        for call in calls:
            for end in range(PIECE, len(call.arguments) + PIECE, PIECE):
                await asyncio.sleep(self.delay)
                yield CallPiece(call.id, call.name, call.arguments[:end])
        entry = Replied(says.text, calls, says.thinking)
        written = await tokens_of_entry(entry)
        usage = ModelUsage(await self._tokens_of(request), written, cost=0.0)
        yield Reply(entry, "called" if calls else "answered", usage)

    async def _tokens_of(self, request: ModelRequest) -> int:
        before = self._counted and self._counted[0]
        # Compared by identity, since there may be two thousand tools.
        if before is None or before.tools is not request.tools:
            self._counted = request, (await tokens.count_later(request.besides)).tokens
        assert self._counted is not None
        return self._counted[1] + await self._context.tokens_of(list(request.entries))

    async def close(self) -> None:
        """Do nothing: it has no connections."""


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
