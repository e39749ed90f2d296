"""The last look at what comes from a server: its own secrets are blotted out."""

import base64
import json
import logging
import re
import weakref
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from divingbell.gateway.secrecy import SHORTEST

MAX_DEPTH = 200
_PIECE = 1 << 20
_CORE = 8
"""Characters of an encoded form that have to be there: fewer are found by chance."""


class Redactor:
    """Replaces the secrets of one server, as they are and as they are commonly encoded."""

    def __init__(self, secrets: Iterable[str] = (), name: str = "a server") -> None:
        self._mark = f"[secret of {name}]"
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._longest = 0
        self.learn(*secrets)
        _redactors.add(self)

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"

    def __bool__(self) -> bool:
        return self._pattern is not None

    def learn(self, *secrets: str | None) -> None:
        """Take more secrets in, such as a token that was just issued."""
        fresh = {item for item in secrets if item and len(item) >= SHORTEST} - self._secrets
        if not fresh:
            return
        self._secrets |= fresh
        forms = {form for secret in self._secrets for form in _forms(secret)}
        # The longest first: a secret may be part of another.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._longest = len(ordered[0])
        self._pattern = re.compile("|".join(map(re.escape, ordered)))

    def clean(self, text: str) -> str:
        """Return the text without the secrets."""
        if self._pattern is None:
            return text
        if len(text) <= _PIECE:
            return self._pattern.sub(self._mark, text)
        return "".join(self._pieces(text, self._pattern))

    def _pieces(self, text: str, pattern: re.Pattern[str]) -> Iterator[str]:
        """Clean a long text bit by bit: nothing else runs while a pattern looks through a text."""
        start = 0
        while start < len(text):
            end = start + _PIECE
            found = pattern.search(text, start, end + self._longest)
            if found is None or found.start() >= end:
                yield text[start:end]
                start = end
            else:
                yield text[start : found.start()]
                yield self._mark
                start = found.end()

    def clean_value(self, value: Any) -> Any:
        """Return a JSON value without the secrets, in its keys too."""
        return value if self._pattern is None else self._cleaned(value, 0)

    def _cleaned(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        if depth > MAX_DEPTH:
            return None
        if isinstance(value, dict):
            return {
                self.clean(key) if isinstance(key, str) else key: self._cleaned(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._cleaned(item, depth + 1) for item in value]
        return value


def _forms(secret: str) -> Iterable[str]:
    yield secret
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    data = secret.encode("utf-8", "surrogatepass")
    yield data.hex()
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
        text = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            text += f" ({record.exc_info[0].__name__})"
        for redactor in list(_redactors):
            text = redactor.clean(text)
        record.msg, record.args = text[:1000], None
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
