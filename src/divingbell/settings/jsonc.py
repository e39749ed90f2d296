"""JSON files as editors write them: with comments, and commas after the last item."""

import json
import re
from pathlib import Path
from typing import Any

from divingbell.errors import ConfigError

MAX_FILE = 64 << 20  # Claude Code keeps its history in the same file as its servers


def read_document(path: Path) -> Any:
    """Return a JSON file's content; comments and trailing commas, which editors allow, too.

    Raises:
        ConfigError: it can't be read.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise ConfigError(f"{path} can't be read: it has more than {MAX_FILE >> 20} MB")
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}") from None
    return parse_document(data, path)


def parse_document(data: bytes, path: Path) -> Any:
    """Return the content of a JSON file that was read already; `path` is for the message.

    Raises:
        ConfigError: it is not JSON.
    """
    try:
        text = data.decode("utf-8-sig")
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return json.loads(_without_comments(text))
    except json.JSONDecodeError as error:
        # Not the error itself: it would be chained to a document with secrets in it.
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(f"{path} is not JSON: {error.msg} at {place}") from None
    except (ValueError, RecursionError):  # not UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path} is not JSON") from None


def _without_comments(text: str) -> str:
    """The text with neither comments nor commas after the last item."""
    # What is not closed is taken to the end: to look for it again from each place takes hours.
    string = r'"(?:\\.|[^"\\])*+"?'

    def keep_strings(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else " "

    text = re.sub(rf"{string}|//[^\n]*|/\*.*?(?:\*/|\Z)", keep_strings, text, flags=re.DOTALL)
    return re.sub(rf"{string}|,(?=\s*[}}\]])", keep_strings, text)
