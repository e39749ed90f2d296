"""Text of others, made safe to show.

Descriptions, messages and names come from servers that nobody here has checked. Terminal escapes
can repaint a screen; invisible characters can carry a sentence that a person does not see and a
model reads. Whatever is not visible is taken out or made visible.
"""

import re
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 200
LONGEST_SEQUENCE = 4200
# No sequence reaches into the next one: a text of nothing but beginnings takes no longer. And each
# has an end, so that whoever looks at a long text bit by bit knows how far one may reach.
_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]{0,1000}+[ -/]{0,100}+[@-~]"  # colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d\n\r]{0,4096}+(?:\x07|\x1b\\|\x9c)"  # titles, links
    r"|\x1b[ -/]{0,100}+[0-~]"
)
_TERMINAL = re.compile(_SEQUENCE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_CUT_MARK = " characters in all]"
_FOLDERS = re.compile(r"(?<![\w:/.~])~?/(?:[\w.@+~-]{1,255}/)+")
ACTING = _CONTROL
"""Characters that do something and show nothing; alone, or at the head of a sequence."""
ACTING_SEQUENCE = rf"(?-i:{_SEQUENCE})|{_CONTROL.pattern}"

_KINDS = {
    "direction controls": r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",
    "zero-width characters": (
        r"\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
        r"\u2800\u3164\ufeff\uffa0"
    ),
    "tag characters": r"\U000e0000-\U000e00ff",
    "variation selectors": r"\ufe00-\ufe0f\U000e0100-\U000e0fff",
    "private-use characters": r"\ue000-\uf8ff\U000f0000-\U0010ffff",
    "lone surrogates": r"\ud800-\udfff",
    "line separators": r"\u2028\u2029",
    "format characters": (
        r"\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\ufdd0-\ufdef\ufff0-\ufffc\ufffe\uffff"
        r"\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    ),
}

# Emoji are made with two of these characters, and Persian, Hindi and others are written with two:
# a single one between letters of such a script. Where they stand as part of either, they hide
# nothing.
_EMOJI = (
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff]"
)
_JOINED = (
    r"[\u0620-\u06d3\u06ee-\u06fc\u0710-\u077f\u08a0-\u08c9\u0900-\u0df4\u1000-\u109f\u1780-\u17b3]"
)
_PART_OF_WRITING = re.compile(
    rf"(?<={_EMOJI})\ufe0f|\ufe0f(?=\u20e3)|(?<=[\ufe0f\U0001f000-\U0001faff])\u200d(?={_EMOJI})"
    rf"|(?<={_JOINED})[\u200c\u200d](?={_JOINED})"
)
_HIDDEN = re.compile(f"[{''.join(_KINDS.values())}]")
_SEPARATOR = re.compile(f"[{_KINDS['line separators']}]")
_KIND = {name: re.compile(f"[{characters}]") for name, characters in _KINDS.items()}


def visible(text: str, limit: int) -> str:
    r"""Return at most `limit` characters of text that shows everything that is in it.

    Terminal escapes and control characters are gone (line breaks and tabs stay); what can't be
    seen is written out, as `\u202e`. A text that is cut says so, and how long it was.
    """
    return _cut(uncovered(text[: _considered(limit)]), limit, len(text))


def one_line(text: str, limit: int) -> str:
    """Return `visible` text without line breaks."""
    # Escapes first: one before a line break would take in what comes after it.
    lines = _SEPARATOR.sub("\n", text[: _considered(limit)])
    return _cut(" ".join(uncovered(lines).split()), limit, len(text))


def _considered(limit: int) -> int:
    # Escape sequences are removed, so a little more than the limit is looked at, but never all of
    # a text of megabytes.
    return 4 * limit + 64


def everywhere(value: Any, limit: int, depth: int = 0) -> Any:
    """Return JSON in which each text is `visible`, the names in it too."""
    if isinstance(value, str):
        return visible(value, limit)
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        return {
            visible(str(key), limit): everywhere(inner, limit, depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [everywhere(inner, limit, depth + 1) for inner in value]
    return value


def texts_in(value: Any) -> list[str]:
    """Yield all texts in a JSON value, names included."""
    found: list[str] = []
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            found += [key for key in item if isinstance(key, str)]
            left += item.values()
        elif isinstance(item, list | tuple):
            left += item
    return found


def uncovered(shown: str) -> str:
    """Return `visible` text that is not cut."""
    if shown.isascii() and shown.isprintable():
        return shown
    shown = shown.replace("\r\n", "\n").replace("\r", "\n")
    if _CONTROL.search(shown):
        shown = _CONTROL.sub("", _TERMINAL.sub("", shown))
    if not shown.isascii() and _HIDDEN.search(shown):
        kept = {match.start() for match in _PART_OF_WRITING.finditer(shown)}
        shown = _HIDDEN.sub(
            lambda match: match[0] if match.start() in kept else _escaped(match[0]), shown
        )
    return shown


def _cut(shown: str, limit: int, length: int) -> str:
    if len(shown) <= limit and length <= _considered(limit):
        return shown
    mark = f"… [cut: {length:,}{_CUT_MARK}"
    if limit <= len(mark):
        return "…"[:limit]
    return shown[: limit - len(mark)] + mark


def is_cut(shown: str) -> bool:
    """Whether this `visible` text was cut."""
    return shown.endswith(_CUT_MARK)


def without_folders(words: str) -> str:
    """Return words in which paths of this machine are names of files: for readers inside, who
    can do nothing with the rest."""
    return _FOLDERS.sub("…/", words)


def is_hiding(text: str) -> bool:
    """Whether a text has characters that `visible` would take out or write out."""
    if _CONTROL.search(text):
        return True
    return not text.isascii() and bool(_HIDDEN.search(_PART_OF_WRITING.sub("", text)))


def suspicious(text: str) -> list[str]:
    """Name the kinds of hidden characters in a text: "tag characters (U+E0041, 12 of them)"."""
    found = []
    if sequences := len(_TERMINAL.findall(text)):
        found.append(f"terminal escapes ({sequences} of them)")
    rest = _TERMINAL.sub("", text)
    if controls := [c for c in _CONTROL.findall(rest) if c != "\r"]:
        found.append(f"control characters ({_code_points(controls)})")
    if not rest.isascii():
        rest = _PART_OF_WRITING.sub("", rest)
        for name, pattern in _KIND.items():
            if characters := pattern.findall(rest):
                found.append(f"{name} ({_code_points(characters)})")
    return found


def _code_points(characters: list[str]) -> str:
    return f"U+{ord(characters[0]):04X}, {len(characters)} of them"


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
