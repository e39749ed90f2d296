"""Events of a session, as they come, to the terminal; and a result as JSON."""

import os
import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path

from divingbell import escapes
from divingbell.models import Event, Failure, Isolation, Limits, Output, Result
from divingbell.surfaces.cli.options import size
from divingbell.surfaces.cli.terminal import pictures
from divingbell.surfaces.cli.terminal.notes import NOTE
from divingbell.surfaces.cli.terminal.writer import STDERR, STDOUT, Writer

_CLEAR_LINE = "\x1b[2K\r"


class Printer:
    """Prints events: stdout to stdout, stderr to stderr, the value to stdout, images to files, the
    rest to stderr. A terminal gets text and colours only; a file or a pipe gets what was
    printed."""

    def __init__(
        self, writer: Writer, plots: Path, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._writer = writer
        self._album = pictures.Album(plots)
        self._filters = {
            descriptor: escapes.Filter() if os.isatty(descriptor) else None
            for descriptor in (STDOUT, STDERR)
        }
        self._line_is_open = dict.fromkeys(self._filters, False)
        on_terminal = self._filters[STDOUT] is not None
        self._protocol = pictures.protocol_of(environment) if on_terminal else None

    def show(self, event: Event) -> None:
        """Show an event; the last one, `done`, shows how the cell ended."""
        if event.type == "stdout":
            self._write_text(STDOUT, event.text)
        elif event.type == "stderr":
            self._write_text(STDERR, event.text)
        elif event.type in ("display", "result"):
            self._display(event)
        elif event.type == "notice":
            self.note(event.text)
        elif event.type in ("progress", "log"):
            self.note(_message_of_tool(event))
        elif event.type == "clear" and self._filters[STDOUT] is not None:
            self._writer.write(STDOUT, _CLEAR_LINE)
        elif event.result is not None:
            self._done(event.result)

    def end_lines(self) -> None:
        """End a line that is not complete, and colours: something else comes now."""
        self._end_colours()
        self._end_line(STDOUT)

    def note(self, text: str) -> None:
        """Say something on stderr, on a line of its own."""
        self._words(STDERR, NOTE + text)

    def line(self, text: str) -> None:
        """Say something on stdout, on a line of its own."""
        self._line(STDOUT, text)

    def words(self, text: str) -> None:
        """Say something on stdout, in lines that are broken between words."""
        self._words(STDOUT, text)

    def _words(self, descriptor: int, text: str) -> None:
        is_terminal = self._filters[descriptor] is not None
        self._line(descriptor, _between_words(text) if is_terminal else text)

    def _write_text(self, descriptor: int, text: str) -> None:
        filter = self._filters[descriptor]
        shown = text if filter is None else filter.feed(text)
        if shown:
            self._writer.write(descriptor, shown)
            self._line_is_open[descriptor] = not shown.endswith("\n")

    def _line(self, descriptor: int, text: str) -> None:
        self._end_line(descriptor)
        self._write_text(descriptor, text.rstrip("\n") + "\n")
        self._end_colours()

    def _end_line(self, descriptor: int) -> None:
        both = self._filters[STDOUT] is not None and self._filters[STDERR] is not None
        for candidate in self._filters if both else (descriptor,):
            if self._line_is_open[candidate]:
                self._line_is_open[candidate] = False
                self._writer.write(candidate, "\n")

    def _end_colours(self) -> None:
        for descriptor, filter in self._filters.items():
            if filter is not None:
                self._writer.write(descriptor, filter.finish())

    def _display(self, event: Event) -> None:
        of_type = {output.type: output for output in event.outputs}
        image = next((of_type[kind] for kind in pictures.IMAGES if kind in of_type), None)
        kept = next((output for output in event.outputs if output.path is not None), image)
        if kept is not None:
            self._image(kept, event.display_id)
        elif "text/plain" in of_type:
            self._line(STDOUT, str(of_type["text/plain"].data))
        elif of_type:
            self.note(f"a display of {escapes.one_line(', '.join(of_type))} can't be shown here")

    def _image(self, image: Output, display_id: str | None) -> None:
        try:
            path = self._album.save(image, display_id)
        except OSError as error:
            self.note(f"a plot could not be saved: {error}; choose a folder with --plots")
            return
        if path is None:
            self.note(f"a plot was left out: there are {pictures.MAX_PICTURES} already")
            return
        if self._protocol is not None and isinstance(image.data, bytes):
            self._end_line(STDOUT)
            self._writer.write(STDOUT, pictures.inline(image.data, self._protocol))
        self.note(f"plot saved as {path}")

    def _done(self, result: Result) -> None:
        self._end_colours()
        if result.status == "cancelled" and self._filters[STDERR] is not None:
            self._line_is_open[STDERR] = True  # the terminal itself has written ^C
        if result.error is not None and (words := _as_python_prints(result.error)):
            self._line(STDERR, words)
        for note in result.notes:
            self.note(note)
        if self._filters[STDOUT] is not None:
            self._end_line(STDOUT)


def _as_python_prints(error: Failure) -> str:
    """Return what Python itself would print: nothing for `sys.exit(3)`, its text for
    `sys.exit("why")`."""
    if error.exit_status is not None:
        return ""
    return error.message if error.type == "SystemExit" else str(error)


def _message_of_tool(event: Event) -> str:
    """Return the message of a tool that works, with its progress."""
    said = escapes.one_line(event.text).removeprefix(f"{event.tool}: ")
    words = f"{event.tool}: {said}"
    if event.progress is None:
        return words
    total = "" if event.total is None else f" of {event.total:g}"
    return f"{words} ({event.progress:g}{total})"


def in_force(isolation: Isolation) -> str:
    """Return the walls and limits around a session, in one line."""
    landlock = f"Landlock {isolation.landlock}" if isolation.landlock else "no Landlock"
    uid = "a uid of its own" if isolation.own_uid else "the uid of its user"
    return f"backend {isolation.backend}, limits by {isolation.limits_by}, {landlock}, {uid}"


def limits_in_force(limits: Limits) -> str:
    """Return the limits that people ask for most, in one line."""
    return f"timeout {limits.timeout:g} s, memory {size(limits.memory)}, disk {size(limits.disk)}"


def _between_words(text: str) -> str:
    """Return a text whose long lines are broken between words: a terminal breaks them anywhere."""
    columns = shutil.get_terminal_size().columns
    lines: list[str] = []
    for line in text.split("\n"):
        broken = textwrap.wrap(
            line, columns, subsequent_indent=" " * len(NOTE), break_on_hyphens=False
        )
        lines += broken if len(line) > columns else [line]
    return "\n".join(lines)
