"""HTML for notebooks, of which nothing can run: whatever a cell has shown is hostile.

All text is escaped. Of what else there is, only images of known types are shown, which the browser
takes as that and as nothing else. HTML and SVG of a cell are never part of the page.
"""

import base64
import html
from collections.abc import Iterable, Sequence

from divingbell_inside import layout

_TEXT = "margin:0;white-space:pre-wrap;background:none"
_SMALL = "margin:0;opacity:.7;font-size:90%"


def text(words: str) -> str:
    """Return text as it was written, to be read and nothing else."""
    return f'<pre style="{_TEXT}">{html.escape(words)}</pre>'


def small_text(words: str) -> str:
    """Return a line about the rest."""
    return f'<p style="{_SMALL}">{html.escape(words)}</p>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a small table of texts."""
    lines = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><tr>{cells(heads, 'th')}</tr>{lines}</table>"


def cells(texts: Iterable[str], kind: str) -> str:
    """Return texts as the cells of one row: `td`, or `th` for its heads."""
    return "".join(f"<{kind}>{html.escape(text)}</{kind}>" for text in texts)


def image(kind: str, data: bytes) -> str:
    """Return an image; of a type that may hold more than pixels, nothing."""
    if kind not in layout.IMAGES:
        return ""
    return f'<img alt="" src="data:{kind};base64,{base64.b64encode(data).decode()}">'
