"""Sights: what stands out in a piece of code, before anybody has said what happens about it."""

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from divingbell.review import vocabulary
from divingbell.settings.review import ReviewKind
from divingbell.text import one_line
from divingbell_inside import layout

MAX_SUBJECT = 80
"""Characters of a name or a path that a finding shows."""
MAX_COMMAND = 1000
"""Characters of a command of the shell that are looked at."""
WRITABLE = (*layout.WRITABLE.values(), "/dev/null", "/dev/stdout", "/dev/stderr", "/proc/self/fd")


class Sight(NamedTuple):
    """Something that stands out."""

    kind: ReviewKind
    line: int
    what: str
    """What the code does, in words that follow "line 3"."""
    subject: str = ""


def shown(text: str) -> str:
    """Return a name or a path of the code as one short line."""
    return one_line(text, MAX_SUBJECT)


@dataclass(slots=True)
class Sights:
    """All that stands out in one piece of code."""

    items: list[Sight] = field(default_factory=list)
    modules: list[tuple[int, str]] = field(default_factory=list)
    """Imported modules with their lines."""
    tools: dict[str, int] = field(default_factory=dict)
    """Tools with the lines where they are first named."""

    def see(self, kind: ReviewKind, line: int, what: str, subject: str = "") -> None:
        self.items.append(Sight(kind, line, what, subject[:MAX_SUBJECT]))

    def see_tool(self, name: str, line: int) -> None:
        """Keep a tool, `server.tool`; `?` for one that is named at run time."""
        self.tools.setdefault(shown(name), line)

    def see_shell(self, command: str, line: int) -> None:
        """Look at a command of the shell."""
        start = command[:MAX_COMMAND]
        words = start.replace(";", " ").replace("&", " ").split()
        for at, word in enumerate(words):
            is_installer = posixpath.basename(word) in vocabulary.INSTALLERS
            if is_installer and vocabulary.INSTALL_WORDS.intersection(words[at + 1 : at + 4]):
                self.see("install", line, f"installs packages with {shown(word)}", word)
                break
        if "".join(start.split()).startswith((":(){", "bomb(){")):
            self.see("bomb", line, "is a fork bomb of the shell")

    def see_written(self, paths: Iterable[str], line: int) -> None:
        """Look at paths that are written to."""
        for path in paths:
            if path and not _is_writable(path):
                self.see("write", line, f"writes to {shown(path)}", path)


def _is_writable(path: str) -> bool:
    whole = posixpath.normpath(posixpath.join(layout.WORKSPACE, path))
    return any(whole == folder or whole.startswith(f"{folder}/") for folder in WRITABLE)
