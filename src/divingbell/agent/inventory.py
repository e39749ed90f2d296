"""What is there: variables, files and datasets of a session, in lines for a model.

It is told at the end of a question, where it has changed since the last one, and not with each
request of an answer: what changes within an answer is what the model's own code has just made and
shown. Told after each cell it would be read again with all later requests, as nothing that was
sent is taken back. A question comes after what others may have changed: an answer that was taken
back, files of the person, a new session.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from divingbell.datasets.folder import WITH_PARTS, look_through, names_for
from divingbell.escapes import one_line
from divingbell.models import FileInfo, Variable
from divingbell.session.base import SessionHandle

MOST = 40
"""Names of each kind."""
MOST_TEXT = 120
_OPENING = "\n\n[What is in the session now:\n"


T = TypeVar("T")


async def inventory(session: SessionHandle, folders: Mapping[str, str] | None = None) -> str:
    """Return what is there, one line a thing; empty where there is nothing.

    `folders` are those whose tables servers offer, by the names of the servers.
    """
    variables = await session.variables()
    files = [file for file in await session.files.list() if not file.path.startswith(".")]
    tables: list[str] = []
    for server, folder in (folders or {}).items():
        tables += await asyncio.to_thread(_tables, server, Path(folder))
    return "\n".join(
        [
            *_lines("variables", variables, variable_line),
            *_lines("files", files, _file),
            *_lines("datasets", tables, one_line),
        ]
    )


def _tables(server: str, folder: Path) -> list[str]:
    """Return a line for each file of tables, under the name that the server knows it by."""
    try:
        files = look_through(folder).files
    except OSError:
        return []
    names = names_for(os.path.splitext(file.path)[0] for file in files)
    lines = []
    for name, file in zip(names, files, strict=True):
        size = f"{file.format}, {file.size:,} bytes"
        # A file of several tables is not opened here: what they are called the server knows.
        several = f"list_datasets() names the tables of {file.path} ({size})"
        lines.append(several if file.format in WITH_PARTS else f"{name} ({size})")
    return [f"servers.{server}: {line}" for line in lines]


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
