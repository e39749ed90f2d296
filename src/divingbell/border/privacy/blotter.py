"""The blotter: takes personal data and secrets out of what is written to logs.

Nobody puts them back, so that a word such as `[EMAIL]` stands for each.
"""

import re
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, TypeVar

from divingbell.border.privacy.find import Find
from divingbell.errors import ConfigError

if TYPE_CHECKING:
    from divingbell.border.privacy.scanner import Scanner

LONGEST = 1 << 16
"""Characters of a text that are searched; the rest is left out."""
LONGEST_UNREADY = 1 << 12
"""The same, as long as what searches is not made."""
_COULD_BE = re.compile(
    # A word with an address, an escape or groups of IPv6; digits with little between them; the
    # beginning of an account; a word of a secret or of a birth with what follows it; anything long
    # with a digit in it; a key.
    r"(?<!\S)(?=\S*(?:@|%[0-9a-fA-F]{2}|\\|&\w*[;#]|[^\x00-\x7f\u2013-\u2027]|:[0-9a-fA-F]{0,4}:))\S+"
    r"|(?<!\w)\w{0,6}?\d(?:[^A-Za-z\n]{0,3}[A-Za-z]{0,2}[^A-Za-z\n]{0,3}\d){3,}\w*"
    r"|(?<!\w)[A-Z]{2}\d\d[ -]?[A-Z0-9]{4}[A-Z0-9 -]*+"
    r"|(?i:pass|pwd|secret|token|bearer|basic|key|credential)\S*\s{0,3}\S*\s{0,3}\S+"
    r"|(?i:born|birth|\bdob\b|d\.o\.b|gebor|geburts|naiss|nacim|nacid|nasc|\bnat[oa]\b|\bnee? le)"
    r".{0,80}"
    r"|(?<![\w+/=.~-])(?=[\w+/=.~-]{12})[\w+/=.~-]*\d[\w+/=.~-]*"
    r"|-----BEGIN[^\x00]*"
)
Made = TypeVar("Made")


class Blotter:
    """Replaces values by the names of their kinds. Never waits for what searches to be made.

    That takes most of a second, and is done in a thread as soon as a text comes that could have a
    value in it. Until then, all that could be part of one is left out. May be used by several
    threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scanning: Callable[[str], Generator[None, None, list[Find]]] | None = None
        self._scanner: Scanner | None = None
        self._missing = ""
        self._making: threading.Thread | None = None
        self._then: list[Callable[[], None]] = []

    def blotted(self, text: str, seconds: float = float("inf")) -> str:
        """Return a text without values; `[left out: …]` in its place if that can't be told.

        The search gives up after so many seconds of processor time.
        """
        if self._scanning is None:
            return self._roughly(text[:LONGEST_UNREADY]) + _left_out(text, LONGEST_UNREADY)
        finds = _finished_within(self._scanning(text[:LONGEST]), seconds)
        if finds is None:
            return f"[left out: {len(text):,} characters with too much to search]"
        return replaced(text[:LONGEST], finds) + _left_out(text, LONGEST)

    @property
    def is_made(self) -> bool:
        """Whether texts are searched already, or never will be, because a package is missing."""
        return self._scanning is not None or bool(self._missing)

    def make(self, then: Callable[[], None] = lambda: None) -> threading.Thread:
        """Begin to make what searches, unless it is; `then` is called when it is made.

        Returns the thread, which calls it; of several that come meanwhile all are called.
        """
        with self._lock:
            self._then.append(then)
            if self._making is None or not self._making.is_alive():
                self._making = threading.Thread(target=self._make, name="blotter", daemon=True)
                self._making.start()
            return self._making

    def scanner(self) -> "Scanner":
        """Return what searches, once it is made; this waits for it.

        Raises:
            ConfigError: a package is missing.
        """
        while self._scanner is None:
            self.make().join()
            if self._missing:
                raise ConfigError(self._missing)
        return self._scanner

    def _roughly(self, text: str) -> str:
        if not could_be(text):
            return text
        if self._missing:
            return f"[left out, because it can't be searched for personal data: {self._missing}]"
        self.make()
        return _COULD_BE.sub("[…]", text)

    def _make(self) -> None:
        # Imported here, since all that takes long to be loaded.
        from divingbell.border.privacy.kinds import KINDS
        from divingbell.border.privacy.scanner import Scanner

        try:
            self._scanner = self._scanner or Scanner(KINDS)
            self._scanning = self._scanner.scanning
        except ConfigError as error:
            self._missing = str(error)
        while True:
            with self._lock:
                if not self._then:
                    self._making = None
                    return
                then = self._then.pop()
            then()


def could_be(text: str) -> bool:
    """Say whether a text may have a value in it: too often rather than not."""
    return bool(_COULD_BE.search(text))


def replaced(text: str, finds: list[Find]) -> str:
    """Return a text with the name of its kind in the place of each find."""
    pieces: list[str] = []
    last = 0
    for start, end, kind in finds:
        pieces += (text[last:start], f"[{kind}]")
        last = end
    return "".join([*pieces, text[last:]])


def _left_out(text: str, limit: int) -> str:
    return f" [left out: {len(text) - limit:,} characters]" if len(text) > limit else ""


def _finished_within(steps: Generator[None, None, Made], seconds: float) -> Made | None:
    """Do work until it is done, or has taken so long; then return None."""
    started = time.thread_time()
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: Made = done.value
            return made
        if time.thread_time() - started > seconds:
            return None


BLOTTER = Blotter()
"""The one of this process."""
