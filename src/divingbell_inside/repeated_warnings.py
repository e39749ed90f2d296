"""Warnings that come again: within a cell the same words are shown once.

Python counts by the number of the line that a warning comes from. A cell that does the same on
twenty lines, or saves a figure that is then shown, would say the same twenty times, or twice. And
all cells are one module to it: what line 3 of one has warned of, line 3 of the next may not.
"""

import warnings
from typing import Any, TextIO

MAX_REMEMBERED = 1_000
_show: Any = warnings.showwarning
_shown: set[tuple[type[Warning], str]] = set()


def install() -> None:
    """In the zygote: show each warning of a cell once."""
    warnings.showwarning = _show_once


def begin_cell(names: dict[str, Any]) -> None:
    """Forget the warnings that were shown: another cell begins, with these names."""
    names.pop("__warningregistry__", None)
    if _shown:
        _shown.clear()


def _show_once(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    known = category, str(message)
    if file is None and known in _shown:
        return
    if len(_shown) < MAX_REMEMBERED:
        _shown.add(known)
    _show(message, category, filename, lineno, file, line)
