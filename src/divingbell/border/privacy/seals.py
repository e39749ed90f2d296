"""Seals: which values of a result code gets as tokens, as the lines on the border say it.

A line is about a whole tool, or about what stands below a field of its results. Of those that are
about a value the first one decides.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from divingbell.border.privacy import documents
from divingbell.border.privacy.fields import LONGEST_PATH, MOST_CACHED, MOST_COMPARISONS
from divingbell.settings.privacy import BorderLine, Reader

_MARK = 200
"""Characters of a name that count as one comparison."""
_LONGEST_INT = 10_000
"""Bits."""


class Hold(NamedTuple):
    """Who does not see a part of a result, and by which line."""

    place: int
    """Of the line that decides: an earlier one would count before it."""
    reader: Reader
    is_field: bool
    """Whether it is because of a field. Then the value is sealed whole, whatever it is."""


class Seals:
    """The lines about one result of a tool. Remembers the names that it was asked about."""

    def __init__(self, tool: str, lines: Iterable[BorderLine]) -> None:
        self._tool = tool
        self._fields: list[tuple[int, BorderLine]] = []
        self.whole = Hold(MOST_COMPARISONS, "model", False)
        """What holds for the tool, where no field says something else."""
        for place, line in enumerate(lines):
            if line.is_whole:
                self.whole = Hold(place, line.reader, False)
                break
            self._fields.append((place, line))
        self._by_name: dict[str, Hold | None] = {}
        self._left = MOST_COMPARISONS

    @property
    def is_by_field(self) -> bool:
        """Whether fields have to be looked at."""
        return bool(self._fields)

    @property
    def is_spent(self) -> bool:
        """Whether there were more comparisons than are made."""
        return self._left <= 0

    def below(self, above: Hold, name: str, path: str) -> Hold:
        """Return what holds below a field, by its name and by all names that lead to it."""
        if not self._fields:
            return above
        if name not in self._by_name:
            if len(self._by_name) >= MOST_CACHED:
                self._by_name.clear()
            self._by_name[name] = self._first(name)
        found = [above, self._by_name[name]]
        if path != name and len(path) <= LONGEST_PATH:
            found.append(self._first(path))
        return min(hold for hold in found if hold is not None)

    def _first(self, name: str) -> Hold | None:
        text = f"{self._tool}.{name}"
        for place, line in self._fields:
            self._left -= 1 + len(name) // _MARK
            if self._left <= 0:
                return None
            if line.pattern.matches(text):
                return Hold(place, line.reader, True)
        return None


def written(value: Any) -> str | None:
    """Return a value that can be sealed as text; None for lists, objects, true, false and null."""
    if isinstance(value, str):
        return value
    if type(value) is int and value.bit_length() > _LONGEST_INT:
        return hex(value)  # Python refuses to write such a number in decimals
    return json.dumps(value) if type(value) in (int, float) else None


def replaced(value: Any, tokens: Mapping[str, str]) -> Any:
    """Return a value of JSON with tokens in the places of texts and numbers, also in JSON in
    texts, and in names."""
    if isinstance(value, dict):
        return {tokens.get(name, name): replaced(each, tokens) for name, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, tokens) for each in value]
    text = written(value)
    if text is None:
        return value
    if text in tokens:
        return tokens[text]
    if isinstance(value, str) and ("{" in value or "[" in value):
        return documents.json_replaced(value, lambda inner: replaced(inner, tokens))
    return value


Change = Callable[[Any], Any]


def with_payloads(value: Any, change: Change) -> Any:
    """Return a result with what its tool has said changed, and what is around it as it was."""
    if isinstance(value, list) and value and all(map(_is_around, value)):
        return [_opened(each, change) for each in value]
    return _opened(value, change) if _is_around(value) else change(value)


def payloads(value: Any) -> list[Any]:
    """Return what a tool has said: the structured value, and the texts of its content.

    A value that stands alone under `result` comes with and without that name: servers put plain
    values there, and code does not get to see it.
    """
    found: list[Any] = []
    with_payloads(value, found.append)
    for each in list(found):
        if isinstance(each, dict) and list(each) == ["result"]:
            found.append(each["result"])
    for item in filter(_is_around, value if isinstance(value, list) else (value,)):
        found += _texts_in_blobs(item)
    return found


def _texts_in_blobs(block: Any) -> Iterator[str]:
    """The texts that come as base64 in what the protocol puts around a result."""
    if not isinstance(block, dict):
        return
    if isinstance(blob := block.get("blob"), str) and len(blob) <= MOST_BLOB:
        yield documents.text_in_base64(blob)
    for name in (*_BLOCKS, "resource"):
        inner = block.get(name)
        for each in inner if isinstance(inner, list) else (inner,):
            yield from _texts_in_blobs(each)


MOST_BLOB = 8 << 20
"""Characters of base64 that are read as a text; as many as of all texts of a result."""
_STRUCTURED = ("structured", "structuredContent")
_BLOCKS = ("content", "contents", "messages")


def _is_around(value: Any) -> bool:
    """Whether this is what the protocol puts around a result, and not the result itself."""
    if not isinstance(value, dict):
        return False
    is_resource = "uri" in value and ("text" in value or "blob" in value)
    return is_resource or any(isinstance(value.get(name), list) for name in _BLOCKS)


def _opened(value: dict[str, Any], change: Change) -> dict[str, Any]:
    inner = {name: change(value[name]) for name in _STRUCTURED if name in value}
    return {**_block(value, change), **inner}


def _block(value: Any, change: Change) -> Any:
    if not isinstance(value, dict):
        return value
    changed = dict(value)
    for name in ("text", "blob", "data", "_meta"):
        if isinstance(inner := value.get(name), bytes):
            changed[name] = _in_bytes(inner, change)
        elif inner is not None:
            changed[name] = change(inner)
    for name in (*_BLOCKS, "resource"):
        inner = value.get(name)
        if isinstance(inner, list):
            changed[name] = [_block(each, change) for each in inner]
        elif isinstance(inner, dict):
            changed[name] = _block(inner, change)
    return changed


def _in_bytes(content: bytes, change: Change) -> bytes:
    """A file that is text, changed; any other as it is."""
    try:
        changed = change(content.decode())
    except UnicodeDecodeError:
        return content
    return changed.encode() if isinstance(changed, str) else content
