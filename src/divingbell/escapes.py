"""Escape sequences in text from a sandbox, made harmless for a terminal.

A terminal obeys what it is sent: escape sequences set its title, write to the clipboard, ask it
to type an answer into the next program. Colours are let through, nothing else is.
"""

import re
from typing import Literal

from divingbell.text import uncovered

RESET = "\x1b[0m"
MAX_PARAMETERS = 64
_SUSPECT = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")  # all but text and _KEPT
_KEPT = "\n\t\r\b"
_COLOUR = re.compile("[0-9;:]*")
_STRING_AFTER_ESCAPE = "]PX^_"
_STRINGS = "\x90\x98\x9d\x9e\x9f"
"""The one-character forms of what ESC starts with P X ] ^ _: DCS, SOS, OSC, PM, APC."""

State = Literal["text", "escape", "control", "string"]


class Filter:
    """Lets text and colours through. A sequence may be cut in two between calls."""

    def __init__(self) -> None:
        self._state: State = "text"
        self._parameters = ""
        self._coloured = False

    def feed(self, text: str) -> str:
        """Return what of the text may be shown."""
        if self._state == "text" and _SUSPECT.search(text) is None:
            return text
        return "".join(map(self._step, text))

    def finish(self) -> str:
        """Forget a sequence that was not completed; return what undoes the colours."""
        self._state = "text"
        coloured, self._coloured = self._coloured, False
        return RESET if coloured else ""

    def _step(self, character: str) -> str:
        if character in "\n\x1b\x18\x1a" or self._state == "text":
            # Each of these ends whatever sequence there was. For a terminal a newline would not,
            # but then one forgotten end would hide everything that follows.
            return self._from_text(character)
        if self._state == "escape":
            return self._from_escape(character)
        if self._state == "control":
            return self._from_control(character)
        if character in "\x07\x9c":
            self._state = "text"
        return ""

    def _from_text(self, character: str) -> str:
        self._state = "text"
        if character == "\x1b":
            self._state = "escape"
        elif character == "\x9b":
            self._start_control()
        elif character in _STRINGS:
            self._state = "string"
        elif character in _KEPT or _SUSPECT.match(character) is None:
            return character
        return ""

    def _from_escape(self, character: str) -> str:
        if character == "[":
            self._start_control()
        elif character in _STRING_AFTER_ESCAPE:
            self._state = "string"
        elif not " " <= character <= "/":  # those are followed by more, as in ESC ( 0
            self._state = "text"
        return ""

    def _start_control(self) -> None:
        self._state = "control"
        self._parameters = ""

    def _from_control(self, character: str) -> str:
        if " " <= character <= "?":
            self._parameters += character if len(self._parameters) <= MAX_PARAMETERS else ""
            return ""
        self._state = "text"
        # `ESC [ > 4 m` ends like a colour and changes what the keyboard sends.
        if (
            character == "m"
            and len(self._parameters) <= MAX_PARAMETERS
            and _COLOUR.fullmatch(self._parameters)
        ):
            self._coloured = True
            return f"\x1b[{self._parameters}m"
        return ""


def clean(text: str) -> str:
    """Return a whole text with its colours, harmless."""
    filter = Filter()
    return filter.feed(text) + filter.finish()


def one_line(text: str) -> str:
    """Return a name or a preview as one line of plain characters, with nothing hidden in it."""
    return uncovered(
        "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode()
            for character in text
        )
    )
