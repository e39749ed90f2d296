"""The log of a conversation: lines of JSON, each sealed and written when it happens.

Whatever ends the program, the lines until then are there. A reply that is being written, and the
output of a cell that runs, come in pieces; the whole of it takes their place once it is there.

The lines are sealed with the key of the vault: they must come back as they were, and a border that
hides little, or a name that nothing finds, leaves values in them.
"""

import base64
import binascii
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divingbell.agent.history import OUTPUT, Answered, Asked, Entry, Replied
from divingbell.agent.mode_choice import ModeChoice
from divingbell.agent.records import ShownCell, as_data, from_data
from divingbell.host import private_file

if TYPE_CHECKING:
    from divingbell.border.vault.seal import Seal

VERSION = 2
MOST_LOG = 64 << 20
"""Bytes of a log; what comes after is not kept."""
ENDED = "[interrupted: the program ended]"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Written:
    """What a log says."""

    model: str = ""
    """The model that was asked last."""
    mode: ModeChoice | None = None
    """How tools are used, where that was decided."""
    entries: list[Entry] = field(default_factory=list)
    cells: dict[int, ShownCell] = field(default_factory=dict)
    """Cells that ran to their end, by the place of the entry that has their output."""
    names: dict[str, str] = field(default_factory=dict)
    """The variables that there were after an answer, and their types."""
    named: int = 0
    """How many entries there were then."""
    asking: str | None = None
    """A question of which nothing else is there yet."""
    text: list[str] = field(default_factory=list)
    """Pieces of a reply that nobody has finished."""
    output: list[str] = field(default_factory=list)
    """Pieces of the output of a cell that has not ended."""

    def take(self, data: dict[str, Any]) -> None:
        """Take the next line. Raises: ValueError for one that is damaged."""
        if "text" in data and "cell" not in data:
            self.text.append(str(data["text"]))
        elif "output" in data:
            self.output.append(str(data["output"]))
        elif "asking" in data:
            self.asking = str(data["asking"])
        elif "forget" in data:
            self.forget(int(data["forget"]))
        elif "model" in data:
            self.model = str(data["model"])
        elif "mode" in data:
            self.mode = ModeChoice.of(data)
        elif "names" in data:
            self.names = {str(name): str(kind) for name, kind in data["names"]}
            self.named = len(self.entries)
        elif isinstance(record := from_data(data), ShownCell):
            self.cells[len(self.entries)] = record
        elif record is not None:
            self.entries.append(record)
            self._drop_pieces()

    def forget(self, place: int) -> None:
        """Forget the entries from a place on."""
        del self.entries[place:]
        self.cells = {at: cell for at, cell in self.cells.items() if at < place}
        self.named = min(self.named, place)
        self._drop_pieces()

    def _drop_pieces(self) -> None:
        self.asking, self.text, self.output = None, [], []

    def settle(self) -> None:
        """Make a conversation of it that can go on: what was begun is marked as interrupted."""
        if self.asking is not None:
            self.entries.append(Asked(self.asking))
        left = _unanswered(self.entries)
        for number, call in enumerate(left):
            seen = "".join(self.output) if number == 0 else ""
            self.entries.append(Answered(call, seen + ENDED))
        if not left and self.text:
            self.entries.append(Replied("".join(self.text) + ENDED))
        elif not left and self.output:
            self.entries.append(Asked(OUTPUT + "".join(self.output) + ENDED))
        self._drop_pieces()

    def lines(self) -> list[dict[str, Any]]:
        """Return the lines of a log that says the same, without the pieces."""
        made: list[dict[str, Any]] = [{"model": self.model, "version": VERSION}]
        if self.mode is not None:
            made.append(dict(self.mode.as_data()))
        for place, entry in enumerate(self.entries):
            if place == self.named:
                made.append(_names_line(self.names))
            if place in self.cells:
                made.append(as_data(self.cells[place]))
            made.append(as_data(entry))
        return made if self.named < len(self.entries) else [*made, _names_line(self.names)]


class Lines:
    """Writes and reads the lines of one conversation, each sealed for it."""

    def __init__(self, seal: "Seal", conversation: str) -> None:
        self._seal = seal
        self._place = f"log of {conversation}"

    def encoded(self, line: dict[str, Any]) -> bytes:
        """Return a line as it is written."""
        return base64.b64encode(self._seal.close(line, self._place)) + b"\n"

    def decoded(self, raw: bytes) -> Any:
        """Return what a line says.

        Raises:
            NotOpened: it was sealed with another key, or not for this conversation.
            ValueError: it is damaged, or only half there.
        """
        if raw.startswith(b"{"):
            return json.loads(raw)  # before lines were sealed: the next opening seals all
        try:
            sealed = base64.b64decode(raw, validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from error
        return self._seal.open(sealed, self._place)

    def parsed(self, raw: bytes) -> Written:
        """Return what lines say, up to the first that is not whole.

        Raises:
            NotOpened: the first of them was sealed with another key.
        """
        from divingbell.border.vault.seal import NotOpened

        written, is_first = Written(), True
        for line in raw.split(b"\n"):
            try:
                data = self.decoded(line) if line else {}
                if isinstance(data, dict):
                    written.take(data)
            except NotOpened:
                if is_first:
                    raise
                break
            except (ValueError, TypeError, RecursionError):
                break  # the program ended while it wrote this line, or the disk is damaged
            is_first = False
        return written

    def read(self, path: Path) -> Written | None:
        """Return what a log says, as far as it is whole; None where there is none of ours.

        Raises:
            NotOpened: it was sealed with another key.
        """
        raw = private_file.read(path, MOST_LOG)
        return None if raw is None else self.parsed(raw)

    def rewrite(self, path: Path, written: Written) -> None:
        """Put a log in place that says this, all at once. Raises: OSError."""
        private_file.write(path, b"".join(map(self.encoded, written.lines())))


class KeptLog:
    """A log that is being written. Only its owner can read it."""

    def __init__(self, path: Path, lines: Lines) -> None:
        self._lines = lines
        self._file = os.open(path, _FLAGS, 0o600)
        self._size = os.fstat(self._file).st_size
        self.is_full = False
        """Whether something was left out, because there is too much."""
        self.is_untouched = True
        """Whether nothing was added."""

    def add(self, line: dict[str, Any]) -> None:
        """Write a line. Raises: OSError where that can't be done."""
        raw = self._lines.encoded(line)
        self.is_untouched = False
        if self.is_full or self._size + len(raw) > MOST_LOG:
            self.is_full = True
            return
        while raw:
            written = os.write(self._file, raw)
            self._size += written
            raw = raw[written:]

    def add_names(self, names: dict[str, str]) -> None:
        """Write down which variables there are, and their types."""
        self.add(_names_line(names))

    def clear(self) -> None:
        """Remove all lines. Raises: OSError."""
        os.ftruncate(self._file, 0)
        self._size, self.is_full = 0, False

    def flush(self) -> None:
        """Have what was written outlast the machine, too."""
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def _names_line(names: dict[str, str]) -> dict[str, Any]:
    return {"names": list(names.items())}


def _unanswered(entries: list[Entry]) -> list[Any]:
    """Return the calls of the last reply that have no answer."""
    answered: list[str] = []
    for entry in reversed(entries):
        if isinstance(entry, Answered):
            answered.append(entry.call.id)
        elif isinstance(entry, Replied):
            return [call for call in entry.calls if call.id not in answered]
        else:
            break
    return []
