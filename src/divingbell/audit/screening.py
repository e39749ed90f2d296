"""Screening for the log: no personal value and no secret is written to it, whatever `privacy` says.

Values that a border knows are replaced by its tokens, which can be revealed; all others by the name
of their kind, such as `[EMAIL]`. Work is bounded: of long texts the start is screened and kept,
with the SHA-256 of the whole.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from divingbell.border.border import Border
from divingbell.border.privacy.blotter import replaced
from divingbell.border.privacy.scanner import Scanner
from divingbell.principal import Principal

MOST_PARTS = 200
"""Parts of arguments that are written down."""
MOST_DEPTH = 8
LEFT_OUT = "…"
HOST_SETS = "[set by the host]"


def _named(value: object) -> str:
    return f"[{type(value).__name__}]"


_JSON = json.JSONEncoder(ensure_ascii=False, default=_named)


class Screening:
    """Takes values out of texts. May be used by several threads."""

    def __init__(self, scanner: Scanner, border: Border) -> None:
        self._scanner = scanner
        self._border = border

    def name(self, text: str, most: int) -> str:
        """Return a short text of others, such as the name of a tool."""
        return self._kept(text, most)

    def text(self, text: str, principal: Principal, most: int) -> dict[str, Any]:
        """Return what is written of a text: all of it or its start, screened. Where it was cut, its
        length and hash say which one it was."""
        cut = len(text) > most
        passed = self._border.text(text[:most], principal, goes_on=cut)
        said: dict[str, Any] = {"text": self._kept(passed, most, goes_on=cut)}
        if cut:
            whole = text.encode("utf-8", "surrogatepass")
            said |= {"characters": len(text), "sha256": hashlib.sha256(whole).hexdigest()}
        return said

    def arguments(
        self, given: Mapping[str, Any], principal: Principal, most: int, hidden: frozenset[str]
    ) -> dict[str, Any]:
        """Return what is written of arguments: JSON as text, with what is too much left out."""
        shown = {name: HOST_SETS if name in hidden else each for name, each in given.items()}
        bounded = _Bounded(most, self._certain).copied(shown)
        written = _JSON.encode(bounded)
        return self.text(written, principal, 2 * most)  # with the signs of JSON

    def _certain(self, text: str) -> str:
        """Return a text without what may be the first half of a value, at its end."""
        return text[: self._scanner.open_from(text)]

    def _kept(self, text: str, most: int, *, goes_on: bool = False) -> str:
        goes_on = goes_on or len(text) > most
        text = text[:most]
        finds = self._scanner.finds(text)
        if not goes_on:
            return replaced(text, finds)
        # At the end may be half a value, which nothing finds.
        certain = min(len(text), self._scanner.open_from(text))
        for find in finds:
            if find.start < certain < find.end:
                certain = find.start
        return replaced(text[:certain], [each for each in finds if each.end <= certain]) + LEFT_OUT


class _Bounded:
    """Copies JSON until it is too much; long texts in it are cut, with their hash."""

    def __init__(self, characters: int, certain: Callable[[str], str]) -> None:
        self._characters = characters
        self._certain = certain
        self._parts = MOST_PARTS

    def copied(self, value: Any, depth: int = 0) -> Any:
        self._parts -= 1
        if self._parts < 0 or self._characters < 0 or depth > MOST_DEPTH:
            return LEFT_OUT
        if isinstance(value, Mapping):
            return self._copied_mapping(value, depth)
        if isinstance(value, list | tuple):
            return self._copied_list(value, depth)
        if isinstance(value, str):
            return self._cut(value)
        if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
            return LEFT_OUT  # to write it takes a time that grows with its square
        return value

    def _copied_mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, each in value.items():
            if self._parts < 0 or self._characters < 0:
                made[LEFT_OUT] = len(value) - len(made)
                break
            made[self._cut(str(name))] = self.copied(each, depth + 1)
        return made

    def _copied_list(self, value: "list[Any] | tuple[Any, ...]", depth: int) -> list[Any]:
        made: list[Any] = []
        for each in value:
            if self._parts < 0 or self._characters < 0:
                made.append(f"{LEFT_OUT} {len(value) - len(made):,} more")
                break
            made.append(self.copied(each, depth + 1))
        return made

    def _cut(self, text: str) -> str:
        room = max(0, self._characters)
        self._characters -= len(text)
        if len(text) <= room:
            return text
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        start = self._certain(text[:room])
        return f"{start}{LEFT_OUT} ({len(text):,} characters, sha256 {digest})"
