"""An agent's events on the screen: words, code and output as they come, and what they cost.

Lines that are finished are not drawn again. Only the last paragraph of the model's words is live.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Literal

from divingbell.agent.events import (
    AgentEvent,
    CellEnded,
    CellEvent,
    CellStarted,
    CodeWritten,
    Done,
    HelperEnded,
    HelperStarted,
    Notice,
    Text,
    Thinking,
    ToolEnded,
    ToolStarted,
)
from divingbell.border.vault import tokens
from divingbell.errors import DivingbellError
from divingbell.escapes import RESET
from divingbell.models import Event, Failure, Output, Result
from divingbell.surfaces.cli.terminal import markdown
from divingbell.surfaces.cli.terminal.costs import cost_of_answer, words_for, words_on_helper
from divingbell.surfaces.cli.terminal.live import Live
from divingbell.surfaces.cli.terminal.look import Look
from divingbell.surfaces.cli.terminal.printing import Printer
from divingbell.surfaces.cli.terminal.revealing import Revealer, certain
from divingbell.surfaces.cli.terminal.writer import STDOUT, Writer
from divingbell.text import one_line, uncovered

BETWEEN_DRAWINGS = 0.07
"""Seconds: to lay out a paragraph takes 2 to 7 ms."""
GUTTER, FOLDED = "┃ ", "┊ "
"""Before a line of code, and before the rest of one that is longer than the screen is wide."""
MAX_ARGUMENTS = 200
HELD_BACK_NOTE = 'the model has not seen this plot: with privacy = "personal" it reads text only'

Kind = Literal["text", "thinking"]
Fetch = Callable[[str], Awaitable[bytes]]
"""Returns the content of a file of the workspace."""


class Words:
    """The model's words, a block at a time: those that are complete for good, the last one live."""

    def __init__(self, write: Callable[[str], None], look: Look, revealer: Revealer) -> None:
        self._look = look
        self._revealer = revealer
        self._write = write
        self._live = Live(write)
        self._block = ""
        self._kind: Kind = "text"
        self._has_shown = False
        """Whether blocks were shown since something else was."""
        self._is_begun = False
        """Whether some of this block is on the screen."""
        self._drawn_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def block(self) -> str:
        """The words that are not final yet."""
        return self._block

    def add(self, text: str, kind: Kind) -> None:
        """Show more words of a kind."""
        if kind != self._kind:
            self.end()
            self._kind = kind
        self._block += text
        while (end := markdown.block_end(self._block)) is not None:
            self._settle(self._block[:end])
            self._block = self._block[end:]
        if self._look.live and self._block.strip() and self._timer is None:
            wait = max(0.0, self._drawn_at + BETWEEN_DRAWINGS - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._draw)

    def end(self) -> None:
        """Show what there is for good, and an empty line: something else comes now."""
        self._settle(self._block)
        self._block = ""
        if self._has_shown:
            self._write("\n")
        self._has_shown = False

    def _draw(self) -> None:
        self._timer = None
        if self._block.strip():
            self._begin()
            self._live.draw(self._lines(self._block), self._look.rows)
            self._drawn_at = time.monotonic()

    def _settle(self, block: str) -> None:
        self._stop_timer()
        if block.strip():
            self._begin()
            self._live.settle(self._lines(block))
        self._is_begun = False

    def _begin(self) -> None:
        """Keep blocks apart by an empty line."""
        if not self._is_begun and self._has_shown:
            self._write("\n")
        self._is_begun = self._has_shown = True

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _lines(self, block: str) -> list[str]:
        look, held = self._look, self._revealer.held(uncovered(block))
        if not look.is_terminal:
            lines = held.strip("\n").split("\n")
        elif self._kind == "thinking":
            lines = [look.dim(line) for line in markdown.wrapped(held, look.columns)]
        else:
            lines = markdown.rendered(markdown.uncovered_entities(held), look.columns, look.colours)
        return [self._revealer.with_marks(line) for line in lines]


class CodeLines:
    """Code that is being written: each line is shown once it is complete."""

    def __init__(self, write: Callable[[str], None], look: Look, revealer: Revealer) -> None:
        self._write = write
        self._look = look
        self._revealer = revealer
        self._call: str | None = None
        self._shown = 0

    def show(self, call: str, code: str, *, is_whole: bool) -> bool:
        """Show the lines that are new; return whether these are the first of this call."""
        is_first = call != self._call
        if is_first:
            self._call, self._shown = call, 0
        code = uncovered(code)
        complete = code.count("\n") + (is_whole and not code.endswith("\n"))
        if complete > self._shown:
            held = self._revealer.held(code)
            lines = zip(
                held.split("\n"), markdown.highlighted(held, self._look.colours), strict=False
            )
            for plain, coloured in list(lines)[self._shown : complete]:
                self._show_line(plain, coloured)
            self._shown = complete
        return is_first

    def _show_line(self, plain: str, coloured: str) -> None:
        columns = self._look.columns - len(GUTTER)
        lines = [coloured]
        if self._look.is_terminal and not _fits(plain, columns):
            lines = markdown.folded(coloured, columns, self._look.colours)
        ending = RESET if self._look.colours else ""
        for number, line in enumerate(lines):
            gutter = self._look.dim(FOLDED if number else GUTTER)
            self._write(f"{gutter}{self._revealer.with_marks(line)}{ending}\n")

    def has(self, call: str, code: str) -> bool:
        """Whether a line of this code is there to be shown that was not."""
        return call == self._call or "\n" in code

    def forget(self) -> None:
        """Forget the call, so that the next one is a new one: names come again."""
        self._call = None


def _fits(line: str, columns: int) -> bool:
    from rich.cells import cell_len

    return "\t" not in line and cell_len(line) <= columns


class AnswerScreen:
    """Shows what an agent tells. Whoever asks the person something takes `lock` meanwhile."""

    def __init__(
        self, writer: Writer, printer: Printer, look: Look, revealer: Revealer, fetch: Fetch
    ) -> None:
        self.lock = asyncio.Lock()
        self.printer = printer
        self.revealer = revealer
        self._writer = writer
        self._look = look
        self._fetch = fetch
        self._words = Words(self._write, look, revealer)
        self._code = CodeLines(self._write, look, revealer)
        self._waiting: dict[str, str] = {}
        """Ends of stdout and stderr that may be half a token."""

    async def show(self, event: AgentEvent) -> None:
        """Show an event; while the person is asked something it waits."""
        async with self.lock:
            await self._show(event)

    async def pause(self) -> None:
        """Bring everything to the screen, so that something else can be written there."""
        self.end()
        await self._writer.drain()

    def end(self) -> None:
        """End what is live, whatever comes now."""
        self._words.end()
        self.printer.end_lines()

    def gap(self) -> None:
        """Leave a line empty."""
        self._write("\n")

    def _write(self, text: str) -> None:
        self._writer.write(STDOUT, text)

    async def _show(self, event: AgentEvent) -> None:
        if isinstance(event, Text | Thinking):
            await self._say(event)
        elif isinstance(event, CodeWritten):
            await self._show_code(event.call, event.code, is_whole=False)
        elif isinstance(event, CellStarted):
            await self._show_code(event.call, event.code, is_whole=True)
            self._code.forget()
        elif isinstance(event, CellEvent):
            await self._show_output(event.event)
        elif isinstance(event, CellEnded):
            await self._end_cell(event.result)
        elif isinstance(event, ToolStarted | ToolEnded):
            await self._tell_of_tool(event)
        elif isinstance(event, HelperStarted | HelperEnded):
            self.printer.note(words_on_helper(event))
        elif isinstance(event, Notice):
            self._words.end()
            self.printer.note(one_line(event.text, 2000))
        elif isinstance(event, Done):
            self._done(event)

    async def _say(self, event: Text | Thinking) -> None:
        if not self._words.block.strip():
            self.printer.end_lines()
        kind: Kind = "text" if isinstance(event, Text) else "thinking"
        await self.revealer.prepare(self._words.block + event.text)
        self._words.add(event.text, kind)

    async def _show_code(self, call: str, code: str, *, is_whole: bool) -> None:
        if self._code.has(call, code) or is_whole:
            self._words.end()
            self.printer.end_lines()
            await self.revealer.prepare(code)
            self._code.show(call, code, is_whole=is_whole)

    # Output of cells

    async def _show_output(self, event: Event) -> None:
        if event.type in ("stdout", "stderr"):
            text = self._waiting.pop(event.type, "") + event.text
            end = certain(text)
            self._waiting[event.type] = text[end:]
            await self._print(replace(event, text=text[:end]))
        elif event.outputs:
            await self._release()
            await self._display(event)
        else:
            await self._print(event)

    async def _print(self, event: Event) -> None:
        await self.revealer.prepare(event.text)
        self.printer.show(replace(event, text=self.revealer.marked(event.text)))

    async def _release(self) -> None:
        """Show what has waited for the rest of a token."""
        waiting, self._waiting = self._waiting, {}
        for name, text in waiting.items():
            if text:
                kind: Literal["stdout", "stderr"] = "stdout" if name == "stdout" else "stderr"
                await self._print(Event(kind, text=text))

    async def _display(self, event: Event) -> None:
        outputs = []
        is_held = False
        for output in event.outputs:
            picture = await self._picture(output)
            is_held = is_held or picture is not None
            outputs.append(picture or await self._revealed(output))
        if is_held:
            outputs = [output for output in outputs if isinstance(output.data, bytes)]
        self.printer.show(replace(event, outputs=tuple(outputs)))
        if is_held:
            self.printer.note(HELD_BACK_NOTE)

    async def _picture(self, output: Output) -> Output | None:
        """Return an image that was held back from the model, which the person may see."""
        # Here, because what looks for personal data takes long to load and is loaded by now.
        from divingbell.border.privacy_border import held_back

        found = held_back(output)
        if found is None or not self._look.is_terminal:
            return None
        try:
            return Output(found[0], await self._fetch(found[1]), output.name, output.cell)
        except DivingbellError:
            return None

    async def _revealed(self, output: Output) -> Output:
        if not isinstance(output.data, str) or output.type != "text/plain":
            return output
        await self.revealer.prepare(output.data)
        return replace(output, data=self.revealer.marked(output.data))

    async def _end_cell(self, result: Result) -> None:
        await self._release()
        error = result.error and await self._revealed_failure(result.error)
        # What the border says of tokens is for the model.
        notes = tuple(note for note in result.notes if not tokens.in_text(note))
        self.printer.show(Event("done", result=replace(result, error=error, notes=notes)))
        self.gap()

    async def _revealed_failure(self, error: Failure) -> Failure:
        await self.revealer.prepare(error.traceback, error.message)
        marked = self.revealer.marked
        return replace(error, traceback=marked(error.traceback), message=marked(error.message))

    async def _tell_of_tool(self, event: ToolStarted | ToolEnded) -> None:
        self._words.end()
        if isinstance(event, ToolStarted):
            await self.revealer.prepare(event.arguments)
            said = self.revealer.marked(one_line(event.arguments, MAX_ARGUMENTS))
            self.printer.note(f"{one_line(event.name, 80)} {said}")
        elif event.failed:
            await self.revealer.prepare(event.text)
            said = self.revealer.marked(one_line(event.text, MAX_ARGUMENTS))
            self.printer.note(f"{one_line(event.name, 80)} failed: {said}")

    def _done(self, event: Done) -> None:
        self.end()
        if words := words_for(event):
            self.printer.note(words)
        self.printer.note(cost_of_answer(event))
