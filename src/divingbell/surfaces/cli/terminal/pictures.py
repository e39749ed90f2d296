"""Images and pages of a session: saved as files, and images shown where the terminal can."""

import base64
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from divingbell.models import Output
from divingbell_inside import layout

MAX_PICTURES = 100
"""In one command: images of a few bytes each could fill a folder."""
IMAGES = (*layout.IMAGES, "image/svg+xml")
Protocol = Literal["iterm", "kitty"]
_PNG = b"\x89PNG\r\n\x1a\n"
_KITTY_PIECE = 4096


class Album:
    """Saves images in a folder, under names that nobody has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._saved = 0
        self._of_display: dict[str, Path] = {}

    def save(self, output: Output, display_id: str | None = None) -> Path | None:
        """Store an image; return where, or None if there were too many of them already.

        A display that is updated keeps its file.

        Raises:
            OSError: the folder can't be written to.
        """
        data = output.data.encode() if isinstance(output.data, str) else output.data
        known = None if display_id is None else self._of_display.get(display_id)
        suffix = layout.suffix_of(output.type)
        if known is not None and known.suffix == suffix:
            descriptor = os.open(known, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
            path = known
        else:
            if self._saved >= MAX_PICTURES:
                return None
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor, path = self._create(suffix)
            self._saved += 1
            if display_id is not None:
                self._of_display[display_id] = path
        with open(descriptor, "wb") as file:
            file.write(data)
        return path

    def _create(self, suffix: str) -> tuple[int, Path]:
        while True:
            self._number += 1
            path = self._folder / f"plot-{self._number}{suffix}"
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                return os.open(path, flags, 0o666), path
            except FileExistsError:
                continue


def protocol_of(environment: Mapping[str, str]) -> Protocol | None:
    """Return the protocol for images of the terminal that set these variables, if it has one."""
    if "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return None  # they stand between and pass nothing on
    program = environment.get("TERM_PROGRAM", "").lower()
    if program in ("iterm.app", "wezterm", "vscode"):
        return "iterm"
    if program == "ghostty" or environment.get("TERM") in ("xterm-ghostty", "xterm-kitty"):
        return "kitty"
    return "kitty" if "KITTY_WINDOW_ID" in environment or _is_konsole(environment) else None


def _is_konsole(environment: Mapping[str, str]) -> bool:
    """Whether it is a Konsole that shows images: 22.04 was the first."""
    version = environment.get("KONSOLE_VERSION", "")
    return version.isdecimal() and int(version) >= 220400


def inline(data: bytes, protocol: Protocol) -> str:
    """Return the escape sequence that shows a PNG; empty for anything that is none."""
    if not data.startswith(_PNG):
        return ""
    text = base64.b64encode(data).decode()
    if protocol == "iterm":
        return f"\x1b]1337;File=inline=1;size={len(data)}:{text}\a\n"
    return "".join(_kitty(text)) + "\n"


def _kitty(text: str) -> Iterator[str]:
    for start in range(0, len(text), _KITTY_PIECE):
        more = int(start + _KITTY_PIECE < len(text))
        # q=2: the terminal's answer would end up in what the user types.
        first = "a=T,f=100,q=2," if start == 0 else ""
        yield f"\x1b_G{first}m={more};{text[start : start + _KITTY_PIECE]}\x1b\\"
