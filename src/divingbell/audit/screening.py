"""Screening for the log: no personal value and no secret is written to it, whatever `privacy` says.

Values that a border knows are replaced by its tokens, which can be revealed; all others by the name
of their kind, such as `[EMAIL]`: what has a shape, and what stands in a personal field of arguments
or beside such a name in code. Work is bounded: of long texts the start is screened and kept, with
the SHA-256 of the whole.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from divingbell.border.border import Border
from divingbell.border.privacy.blotter import replaced
from divingbell.border.privacy.fields import Field, Fields, FieldsOfOrigin
from divingbell.border.privacy.learned import Learned
from divingbell.border.privacy.learner import Learner, may_be
from divingbell.border.privacy.named_values import in_code
from divingbell.border.privacy.scanner import Scanner
from divingbell.border.privacy.screen import Screen
from divingbell.border.vault import tokens
from divingbell.principal import Principal

MOST_PARTS = 200
"""Parts of arguments that are written down."""
MOST_DEPTH = 8
MOST_FIELD = 512
"""Characters of a text of a personal field that are looked at."""
MOST_NUMBER = 10**40
"""No number of anyone is as large."""
LEFT_OUT = "…"
HOST_SETS = "[set by the host]"
MOST_CONVERSATIONS = 200
"""Conversations whose names and addresses are found again in what is written later."""
MOST_LEARNED = 2_000
"""Values of one of them, from which on it begins anew."""


def _named(value: object) -> str:
    return f"[{type(value).__name__}]"


_JSON = json.JSONEncoder(ensure_ascii=False, default=_named)


class Screening:
    """Takes values out of texts. May be used by several threads."""

    def __init__(self, scanner: Scanner, border: Border, fields: Fields | None = None) -> None:
        self._scanner = scanner
        self._border = border
        self._fields = fields or Fields()
        self._known: OrderedDict[Principal, tuple[Learner, Screen]] = OrderedDict()
        """What was learned in arguments and code, by conversation."""
        self._guard = threading.Lock()

    def name(self, text: str, most: int) -> str:
        """Return a short text of others, such as the name of a tool."""
        return self._kept(text, most, Screen(self._scanner, Learned()))

    def code(self, code: str, principal: Principal, most: int) -> dict[str, Any]:
        """Return the same of code or a command, with what its names say is personal."""
        learner, screen = self._known_in(principal)
        for origin, value in in_code(code[:most]):
            learner.learn(value, origin)
        return self._text(code, principal, most, screen)

    def text(self, text: str, principal: Principal, most: int) -> dict[str, Any]:
        """Return what is written of a text: all of it or its start, screened. Where it was cut, its
        length and hash say which one it was."""
        return self._text(text, principal, most, self._known_in(principal)[1])

    def _text(self, text: str, principal: Principal, most: int, screen: Screen) -> dict[str, Any]:
        cut = len(text) > most
        passed = self._border.text(text[:most], principal, goes_on=cut)
        said: dict[str, Any] = {"text": self._kept(passed, most, screen, goes_on=cut)}
        if cut:
            whole = text.encode("utf-8", "surrogatepass")
            said |= {"characters": len(text), "sha256": hashlib.sha256(whole).hexdigest()}
        return said

    def arguments(
        self,
        given: Mapping[str, Any],
        principal: Principal,
        most: int,
        hidden: frozenset[str],
        tool: str = "",
    ) -> dict[str, Any]:
        """Return what is written of the arguments of a tool: JSON as text, with what is too much
        left out, and nothing of what stands in personal fields."""

        def in_place(text: str, kind: str) -> str:
            shown = self._border.text(text, principal)
            # Where the border knows a part of it alone, the rest is as personal.
            is_hidden = not any(map(str.isalnum, tokens.TOKEN.sub("", shown)))
            return shown if is_hidden else f"[{kind}]"

        open_to_all = {name: each for name, each in given.items() if name not in hidden}
        # What is learned is cut like what is written, and not yet replaced.
        cut = _Bounded(most, self._certain).copied(open_to_all)
        learner, screen = self._known_in(principal)
        learner.learn(cut, tool)
        fields = self._fields.of(tool)
        shown = {name: HOST_SETS if name in hidden else each for name, each in given.items()}
        bounded = _Bounded(most, self._certain, fields, in_place).copied(shown)
        written = _JSON.encode(bounded)
        return self._text(written, principal, 2 * most, screen)  # with the signs of JSON

    def _known_in(self, principal: Principal) -> tuple[Learner, Screen]:
        with self._guard:
            known = self._known.pop(principal, None)
            if known is None or len(known[1].learned) > MOST_LEARNED:
                learned = Learned()
                known = Learner(self._fields, learned), Screen(self._scanner, learned)
            self._known[principal] = known
            if len(self._known) > MOST_CONVERSATIONS:
                self._known.popitem(last=False)
            return known

    def _certain(self, text: str) -> str:
        """Return a text without what may be the first half of a value, at its end."""
        return text[: self._scanner.open_from(text)]

    def _kept(self, text: str, most: int, screen: Screen, *, goes_on: bool = False) -> str:
        goes_on = goes_on or len(text) > most
        text = text[:most]
        finds = screen.finds(text)
        if not goes_on:
            return replaced(text, finds)
        # At the end may be half a value, which nothing finds.
        certain = min(
            self._scanner.open_from(text),
            *(each.open_from(text) for each in screen.all_learned),
            len(text),
        )
        for find in finds:
            if find.start < certain < find.end:
                certain = find.start
        return replaced(text[:certain], [each for each in finds if each.end <= certain]) + LEFT_OUT


class _Bounded:
    """Copies JSON until it is too much; long texts in it are cut, with their hash."""

    def __init__(
        self,
        characters: int,
        certain: Callable[[str], str],
        fields: FieldsOfOrigin | None = None,
        in_place: Callable[[str, str], str] = lambda text, kind: text,
    ) -> None:
        """`in_place` returns what stands for a text of a personal field, of that kind."""
        self._characters = characters
        self._certain = certain
        self._fields = fields
        self._in_place = in_place
        self._parts = MOST_PARTS

    def copied(self, value: Any, depth: int = 0, field: Field | None = None, path: str = "") -> Any:
        self._parts -= 1
        if self._parts < 0 or self._characters < 0 or depth > MOST_DEPTH:
            return LEFT_OUT
        if value is HOST_SETS:
            return value
        if isinstance(value, Mapping):
            return self._copied_mapping(value, depth, field, path)
        if isinstance(value, list | tuple):
            return self._copied_list(value, depth, field, path)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if field is not None and field.kind and (isinstance(value, str) or is_number):
            # Of a longer one, the start says as much.
            text = str(value)[:MOST_FIELD] if not is_number or abs(value) < MOST_NUMBER else "0"
            if field.is_meant or may_be(text, field.kind):
                return self._cut(self._in_place(text, field.kind))
        if isinstance(value, str):
            return self._cut(value)
        if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
            return LEFT_OUT  # to write it takes a time that grows with its square
        return value

    def _copied_mapping(
        self, value: Mapping[Any, Any], depth: int, field: Field | None, path: str
    ) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, each in value.items():
            if self._parts < 0 or self._characters < 0:
                made[LEFT_OUT] = len(value) - len(made)
                break
            below = f"{path}.{name}" if path else str(name)
            own = None if self._fields is None else self._fields.field(str(name), below)
            inner = self.copied(each, depth + 1, field if own is None else own, below)
            made[self._cut(str(name))] = inner
        return made

    def _copied_list(
        self, value: "list[Any] | tuple[Any, ...]", depth: int, field: Field | None, path: str
    ) -> list[Any]:
        made: list[Any] = []
        for each in value:
            if self._parts < 0 or self._characters < 0:
                made.append(f"{LEFT_OUT} {len(value) - len(made):,} more")
                break
            made.append(self.copied(each, depth + 1, field, path))
        return made

    def _cut(self, text: str) -> str:
        room = max(0, self._characters)
        self._characters -= len(text)
        if len(text) <= room:
            return text
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        start = self._certain(text[:room])
        return f"{start}{LEFT_OUT} ({len(text):,} characters, sha256 {digest})"
