"""What is there: variables, files and datasets of a session, in lines for a model."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from divingbell.escapes import one_line
from divingbell.models import FileInfo, Variable
from divingbell.session.base import SessionHandle

MOST = 40
"""Names of each kind."""
MOST_TEXT = 120
_OPENING = "\n\n[What is in the session now:\n"


T = TypeVar("T")


async def inventory(session: SessionHandle) -> str:
    """Return what is there, one line a thing; empty where there is nothing."""
    variables = await session.variables()
    files = [file for file in await session.files.list() if not file.path.startswith(".")]
    return "\n".join(
        [*_lines("variables", variables, variable_line), *_lines("files", files, _file)]
    )


def with_inventory(text: str, now: str) -> str:
    """Return a person's words with what is there at their end."""
    return f"{text}{_OPENING}{now}]"


def without_inventory(text: str) -> str:
    """Return the words alone."""
    return text.partition(_OPENING)[0]


def _lines(title: str, items: Sequence[T], line: Callable[[T], str]) -> list[str]:
    if not items:
        return []
    rest = [f"  … and {len(items) - MOST:,} more"] if len(items) > MOST else []
    return [f"{title}:", *(f"  {line(item)[:MOST_TEXT]}" for item in items[:MOST]), *rest]


def variable_line(variable: Variable) -> str:
    """Return a variable in one line: its name, its type, how large it is."""
    if variable.shape is not None:
        detail = " × ".join(map(str, variable.shape))
    else:
        detail = "" if variable.length is None else f"{variable.length:,} items"
    return one_line(f"{variable.name}: {variable.type} {detail}".rstrip())


def _file(file: FileInfo) -> str:
    return one_line(f"/workspace/{file.path}: {file.size:,} bytes")
