"""The ledger: tokens that an execution cost the model, and that the same calls would have cost.

"Directly" is how clients use tools without code: the definitions of all tools stand in the
context, and the arguments and the result of each call pass through the model. A definition is
counted as the JSON of name, description and input schema, compact and with letters as they are;
over the tool lists of 55 real servers with 2,133 tools that makes 695 thousand tokens. They count
where a model would have read them and once a conversation, though a client sends them again with
each turn: the real saving is larger. Where no model reads (commands, the library) they are 0.

Counting takes longer than a call does. So the texts of calls are only kept while the code runs,
and counted when it has ended.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from divingbell import logs
from divingbell.journal import tokens
from divingbell.models import Ledger, ToolUse
from divingbell.tool import Tool

if TYPE_CHECKING:
    import mcp_types

log = logs.logger("divingbell.journal")

MOST_KEPT = 1 << 20
"""Characters of calls that are kept to be counted; beyond that, calls are taken to be alike."""
MOST_TOOLS = 100
"""Tools that a ledger names; the others are counted without a name."""
COUNTED_AT_ONCE = 50_000
"""Characters that are counted on the loop, measured at some 10 ms; more goes to a thread."""
OTHERS = "others"


class Definitions:
    """The tokens of definitions, each counted once. One for a whole Divingbell.

    Two thousand definitions take half a second: call `count_later` when the servers are known.
    """

    def __init__(self) -> None:
        self._counts: dict[str, tuple[Tool, int]] = {}

    def count(self, tools: Iterable[Tool]) -> int:
        """Return the tokens of the definitions of these tools."""
        total = 0
        for tool in tools:
            known = self._counts.get(tool.full_name)
            if known is None or known[0] is not tool:
                known = self._counts[tool.full_name] = (tool, tokens.count(definition(tool)))
            total += known[1]
        return total

    async def count_later(self, tools: Iterable[Tool]) -> int:
        """Return the same, without holding up the loop."""
        wanted = list(tools)
        known = (self._counts.get(tool.full_name) for tool in wanted)
        if all(one is not None and one[0] is tool for one, tool in zip(known, wanted, strict=True)):
            return self.count(wanted)
        return await asyncio.to_thread(self.count, wanted)


def definition(tool: Tool) -> str:
    """Return a definition as a model reads it."""
    shown = {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
    try:
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"), default=_as_plain_data)
    except (TypeError, ValueError, RecursionError):
        return f"{tool.name} {tool.description}"


def _as_plain_data(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a definition can't hold {type(value).__name__}")


class _Texts:
    """Texts that are counted later: kept as long as there is room, of the rest the length."""

    def __init__(self) -> None:
        self.calls = 0
        self._kept: list[str | bytes] = []
        self._kept_length = 0
        self._length = 0

    def add(self, text: str | bytes, room: int) -> int:
        """Add one; return how much of it was kept."""
        self._length += len(text)
        if room <= 0:
            return 0
        part = text if len(text) <= room else text[:room]
        self._kept.append(part)
        self._kept_length += len(part)
        return len(part)

    def counted(self) -> tokens.Count:
        """Count what was kept, and take the rest to be alike."""
        kept = "".join(
            part if isinstance(part, str) else part.decode("utf-8", "replace")
            for part in self._kept
        )
        found = tokens.measure(kept)
        if self._kept_length == self._length:
            return found
        density = found.tokens / self._kept_length if kept else 1 / tokens.CHARACTERS_PER_TOKEN
        return tokens.Count(round(self._length * density), estimated=True)


class Accountant:
    """Keeps the books of one session. All of it on one loop; `note_call` takes microseconds."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.opens_conversation = False
        """Whether the next execution is the first of a conversation with a model."""
        self.is_read = False
        """Whether the model of an agent reads what the session shows."""
        self.is_spared: Callable[[Tool], bool] | None = None
        """Says whether the model is spared the definition of a tool, if it has others than most."""
        self._start()

    def open_conversation(self, surface: str) -> None:
        """Count what a model reads as it begins: the `surface`, which is all that it is told of
        Divingbell itself, in place of the definitions of all tools."""
        self.opens_conversation = True
        self.note_shown(surface)

    def _start(self) -> None:
        self._calls: dict[str, _Texts] = {}
        self._overhead = _Texts()
        self._kept = 0
        self._images = 0

    def note_call(
        self, tool: str, arguments: str | bytes, *result: str | bytes, images: int = 0
    ) -> None:
        """Note a call: `server.tool`, its arguments as JSON, and what a client would have shown
        to the model of its result (the text; images are only counted)."""
        known = tool in self._calls or len(self._calls) < MOST_TOOLS
        calls = self._calls.setdefault(tool if known else OTHERS, _Texts())
        calls.calls += 1
        self._images += images
        for text in (f'{{"name":"{tool}","arguments":', arguments, "}\n", *result, "\n"):
            self._kept += calls.add(text, MOST_KEPT - self._kept)

    def note_result(
        self,
        tool: str,
        arguments: bytes,
        result: "mcp_types.CallToolResult",
        body: bytes,
    ) -> None:
        """Note a call by what its server answered; `body` is its value as JSON, for one that has no
        text beside it. Only as much is taken as there is room for."""
        texts = [block.text for block in result.content if block.type == "text"]
        images = sum(block.type == "image" for block in result.content)
        # Each text is a line of its own: a list comes as one text for each of its items.
        shown: Sequence[str | bytes] = [part for text in texts for part in (text, "\n")][:-1]
        if not any(texts) and result.structured_content is not None:
            shown = [body]
        self.note_call(tool, arguments, *shown, images=images)

    def note_shown(self, text: str) -> None:
        """Note what the model was shown outside of an execution: found tools, their details."""
        for part in (text, "\n"):
            self._kept += self._overhead.add(part, MOST_KEPT - self._kept)

    async def close_execution(
        self, code: str, shown: str, tools: Iterable[Tool] = (), *, images: int = 0
    ) -> Ledger:
        """Return the ledger of the execution that has just ended, and start a new one.

        `tools` are all that there are, whose definitions count if it opens a conversation. It
        never fails: what can't be counted is 0, and logged.
        """
        first, self.opens_conversation = self.opens_conversation, False
        book = _Book(code, shown, self._overhead, self._calls)
        length, direct_images = self._kept + len(code) + len(shown), self._images
        self._start()
        try:
            definitions = await self._definitions.count_later(tools) if first else 0
            counted = (
                book.counted()
                if length <= COUNTED_AT_ONCE and tokens.is_ready()
                else await asyncio.to_thread(book.counted)
            )
        except Exception as error:
            log.warning("the tokens of an execution can't be counted", exc_info=error)
            return Ledger(calls=sum(one.calls for one in book.calls.values()), estimated=True)
        return Ledger(
            **counted,
            direct_definition_tokens=definitions,
            images=images,
            direct_images=direct_images,
        )


@dataclass(frozen=True, slots=True)
class _Book:
    """The texts of one execution."""

    code: str
    shown: str
    overhead: _Texts
    calls: Mapping[str, _Texts]

    def counted(self) -> dict[str, Any]:
        """Return the fields of a Ledger that come from counting."""
        code, shown = tokens.measure(self.code), tokens.measure(self.shown)
        overhead = self.overhead.counted()
        by_tool = {name: texts.counted() for name, texts in self.calls.items()}
        return {
            "code_tokens": code.tokens,
            "output_tokens": shown.tokens,
            "overhead_tokens": overhead.tokens,
            "direct_call_tokens": sum(one.tokens for one in by_tool.values()),
            "calls": sum(texts.calls for texts in self.calls.values()),
            "estimated": any(one.estimated for one in (code, shown, overhead, *by_tool.values())),
            "tools": tuple(
                ToolUse(name, self.calls[name].calls, one.tokens) for name, one in by_tool.items()
            ),
        }
