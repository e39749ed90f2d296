"""Redaction: the secrets of a server are blotted out of all that comes from it."""

import base64
import itertools
import json
import logging
import re
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from divingbell import disguises, logs, text
from divingbell.disguises import Disguises, View
from divingbell.settings.secrets import SHORTEST

Model = TypeVar("Model", bound=BaseModel)

MAX_DEPTH = 200
MOST_LEARNT = 20
"""Secrets that came while it ran: a server may issue tokens without end."""
MAX_REACH = 64 << 10
MAX_RECORD = 1000
_PIECE = 1 << 18
_CORE = 7
"""Characters of base64 that a secret fills by itself: fewer are found by chance. The shortest
secret has as many."""
_NUMBER = re.compile(r"[-+.e\d]+", re.ASCII)
_LINE = 16
"""The least characters of one line of a secret of several lines, to be blotted out by itself."""


class Redactor:
    """Replaces the secrets of one server, as they are and as they are commonly encoded.

    The work grows with the length of the text, whatever the secrets are: a server issues tokens
    itself, and could choose them so that a search takes its time.
    """

    def __init__(self, secrets: Iterable[str] = (), name: str = "a server") -> None:
        self._mark = f"[secret of {name}]"
        self._given = {item for item in secrets if len(item) >= SHORTEST}
        self._learnt: deque[str] = deque(maxlen=MOST_LEARNT)
        self._forms: list[str] = []
        self._has_numbers = False
        self._disguises = Disguises(())
        self._prepare()
        _redactors.add(self)

    def __repr__(self) -> str:
        return f"Redactor({len(self._given) + len(self._learnt)} secrets)"

    def __bool__(self) -> bool:
        return bool(self._forms)

    @property
    def reach(self) -> int:
        """Characters that have to be at hand at least, so that a secret at their end is seen."""
        return min(MAX_REACH, self._longest * disguises.LONGEST)

    @property
    def _longest(self) -> int:
        return len(self._forms[0]) if self._forms else 0

    def learn(self, *secrets: str | None) -> None:
        """Take more secrets in, such as a token that was just issued."""
        known = self._given.union(self._learnt)
        fresh = [item for item in secrets if item and len(item) >= SHORTEST and item not in known]
        if fresh:
            self._learnt.extend(fresh)
            self._prepare()

    def _prepare(self) -> None:
        forms = {form for secret in (*self._given, *self._learnt) for form in _forms(secret)}
        # The longest first: a secret may be part of another.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._has_numbers = any(map(_NUMBER.fullmatch, self._forms))
        self._disguises = Disguises(itertools.chain.from_iterable(self._forms))

    def finds(self, text: str) -> bool:
        """Say whether there is a secret in a text."""
        return next(self._found(text), None) is not None

    def clean(self, text: str) -> str:
        """Return the text without the secrets."""
        pieces: list[str] = []
        last = 0
        for start, end in self._found(text):
            pieces += (text[last:start], self._mark)
            last = end
        return "".join([*pieces, text[last:]]) if pieces else text

    def clean_value(self, value: Any) -> Any:
        """Return a JSON value without the secrets, in its keys too."""
        return value if not self._forms else self._clean_below(value, 0)

    def clean_model(self, model: Model) -> Model:
        """Return a message of the protocol without the secrets."""
        if not self:
            return model
        dumped = model.model_dump(by_alias=True, mode="json", exclude_unset=True)
        # All of its texts as one: most results hold no secret, and that is seen at one look.
        if not self.finds("\n".join(text.texts_in(dumped))):
            return model
        return type(model).model_validate(self.clean_value(dumped), by_name=False)

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the places of the secrets, as they are or in disguise.

        A long text is gone through bit by bit: while a pattern or a search looks through a text,
        nothing else in this process runs.
        """
        if not self._forms:
            return iter(())
        size = max(_PIECE, self._longest)
        spans: list[tuple[int, int]] = []
        for at in range(0, len(text), size):
            spans += self._places(text[at : at + size + self._longest], at)
        for view in self._disguises.views(text, size):
            spans += self._disguised(view)
        return _merged(spans)

    def _disguised(self, view: View) -> Iterator[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        before, end = "", 0
        for _, said in view.pieces():
            # A secret may begin in one piece and end in another, whatever lies between in the text.
            spans += self._places(before + said, end - len(before))
            end += len(said)
            before = (before + said)[-self._longest :]
        if not spans:
            return iter(())
        places = view.located(index for a, b in _merged(spans) for index in (a, b - 1))
        return ((start, end) for (start, _), (_, end) in zip(places, places, strict=True))

    def _places(self, text: str, offset: int) -> Iterator[tuple[int, int]]:
        # Not one expression for all: a search for one text takes linear time in any text.
        found = itertools.chain.from_iterable(_places(text, form) for form in self._forms)
        return ((offset + start, offset + end) for start, end in found)

    def _clean_below(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, int | float):
            return self._mark if self._has_numbers and self.finds(repr(value)) else value
        if depth > MAX_DEPTH:
            return None
        if isinstance(value, dict):
            return {
                self.clean(key) if isinstance(key, str) else key: self._clean_below(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._clean_below(item, depth + 1) for item in value]
        return value


def _places(text: str, form: str) -> Iterator[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + len(form))


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin = finish = -1
    for start, end in sorted(spans):
        if start >= finish:
            if finish >= 0:
                yield begin, finish
            begin = start
        finish = max(finish, end)
    if finish >= 0:
        yield begin, finish


def _forms(secret: str) -> Iterator[str]:
    """The secret and its encodings; escapes are undone before these are looked for."""
    yield secret
    yield secret.replace(" ", "+")  # as forms on the web have it
    yield json.dumps(secret, ensure_ascii=False)[1:-1]  # for the backslashes in it
    for line in map(str.strip, secret.splitlines()):
        if len(line) >= _LINE and not line.startswith("-----"):  # keys are indented, and cut
            yield line
    data = secret.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    for before in range(3):  # inside a longer text a secret may begin at any of three places
        encoded = base64.b64encode(bytes(before) + data).decode()
        first = -(-before * 4 // 3)
        last = (before + len(data)) * 4 // 3
        core = encoded[first:last]
        if len(core) >= _CORE:
            yield core
            yield core.replace("+", "-").replace("/", "_")


_redactors: "weakref.WeakSet[Redactor]" = weakref.WeakSet()


class LogFilter(logging.Filter):
    """Takes the secrets, and the tracebacks that quote whole messages, out of the SDK's records."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and getattr(record.exc_info[0], "expected", False):
            return False  # it is told where it belongs
        said = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            said += f" ({record.exc_info[0].__name__})"
        for redactor in list(_redactors):
            said = redactor.clean(said)
        record.msg, record.args = logs.screened(text.visible(said, MAX_RECORD)), None
        record.exc_info = record.exc_text = record.stack_info = None
        return True


_filter = LogFilter()
_LOGGERS = (
    "client",  # mcp's session calls itself that
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
    "mcp.client.client",
    "mcp.client.sse",
    "mcp.client.streamable_http",
    "mcp.shared.dispatcher",
    "mcp.shared.jsonrpc_dispatcher",
)


def guard_logs() -> None:
    """Clean what the SDK logs from now on: it quotes messages, and they may quote headers."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _filter not in logger.filters:
            logger.addFilter(_filter)
