"""Completions of a line, for whoever presses Tab: IPython's own answer, cut short."""

from itertools import islice
from typing import Any

MOST = 200
MAX_TEXT = 200
# IPython takes these for ends of lines in one place and not in another, and fails where one stands
# before the cursor. Each becomes one character, so that positions stay.
_ENDS = dict.fromkeys(map(ord, "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), "\n")


def completions(shell: Any, source: str, position: int) -> list[list[Any]]:
    """Return from where to where a text is to be replaced, and by what, for each possibility."""
    from IPython.core.completer import provisionalcompleter

    source = source.replace("\r\n", " \n").translate(_ENDS)
    completer = shell.Completer
    completer.use_jedi = False  # it would take half a second to load, and looks at source only
    with provisionalcompleter():
        found = [
            [item.start, item.end, item.text]
            for item in islice(completer.completions(source, position), MOST)
        ]
    # A magic is meant by whoever has typed its sign.
    return [
        [start, end, text]
        for start, end, text in found
        if len(text) <= MAX_TEXT and (text[:1] != "%" or source[start : start + 1] == "%")
    ]
