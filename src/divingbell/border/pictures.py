"""Pictures that a model may see, because nothing is found in the texts that are said to be in them.

Nobody reads the pixels. The texts come from the process that drew them, and are believed: this is
for programs that draw charts, and no wall against code that draws a value without telling.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence

HELD_BACK = "with `privacy` set to personal, what can't be read as text is not shown"
FOUND = "its texts have {kinds} in them"
MOST_PICTURES = 1000
"""Those that were shown last, which may pass again: as an answer, and as a file."""
MOST_NAMED = 5


class Pictures:
    """The pictures of one conversation. Any thread may ask.

    `kinds_in` returns the kinds of values that are found in texts.
    """

    def __init__(self, kinds_in: Callable[[Iterable[str]], set[str]]) -> None:
        self._kinds_in = kinds_in
        self._shown: OrderedDict[bytes, None] = OrderedDict()
        self._guard = threading.Lock()

    def problem_of(self, content: bytes, texts: Sequence[str] | None) -> str:
        """Return why a picture with these texts is held back; empty if it may be shown."""
        if texts is None:
            return "" if self.has(content) else HELD_BACK
        if found := sorted(self._kinds_in(texts)):
            more = " and others" if len(found) > MOST_NAMED else ""
            return FOUND.format(kinds=", ".join(found[:MOST_NAMED]) + more)
        with self._guard:
            self._shown[_digest(content)] = None
            while len(self._shown) > MOST_PICTURES:
                self._shown.popitem(last=False)
        return ""

    def has(self, content: bytes) -> bool:
        """Whether this very picture was shown."""
        return bool(self._shown) and _digest(content) in self._shown


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
