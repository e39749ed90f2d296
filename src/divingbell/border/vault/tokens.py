"""Tokens: they stand for values that a model does not see, such as `[EMAIL_482715]`.

The number is random. `[EMAIL_1]` would be there in every conversation: carried over into another it
would mail the wrong person, and a stranger's "forward to [EMAIL_1]" would be filled in.
"""

import re
import secrets
from collections.abc import Callable, Container, Iterator

from divingbell.settings import kinds

LEAST_DIGITS = 6
MOST_DIGITS = 15
CHANCE = 10_000
"""A guess at a token of a kind hits one of those that there are less often than once in so many."""
MOST_REACHED = 65
"""Vaults whose tokens one conversation knows, its own and those that it was joined with: a guess
has as many times the chance, whatever was in each of them before."""
LONGEST = kinds.MOST_NAME + MOST_DIGITS + 3
"""Characters of the longest token."""
TOKEN = re.compile(r"\[([A-Z][A-Z0-9_]{0,22}[A-Z0-9])_([1-9][0-9]{5,14})\]")
"""Linear: a kind has no more than 24 letters, and only digits follow its last underscore."""
_NEARLY = re.compile(r"[\[<{]([A-Za-z][A-Za-z0-9_]{0,22}[A-Za-z0-9])[_ -][0-9]{4,15}[\]>}]")
_ENDINGS = bytes.maketrans(b"0123456789>}", b"0000000000]]")
_ENDING = b"0000]"
"""The end of each of these, once all digits are one, and all brackets that close."""


def draw(kind: str, count: int, taken: Container[str]) -> str:
    """Return a new token of a kind of which there are `count`; it is none of those `taken`."""
    least = 10 ** (digits_for(count) - 1)
    while True:
        token = f"[{kind}_{least + secrets.randbelow(9 * least)}]"
        if token not in taken:
            return token


def digits_for(count: int) -> int:
    """Return how many digits a new token has, where there are `count` of its kind."""
    return max(LEAST_DIGITS, len(str((count + 1) * CHANCE * MOST_REACHED * 10 // 9)))


def kind_of(token: str) -> str:
    """Return the kind of a token."""
    return token[1:].rpartition("_")[0]


def near_misses(text: str) -> Iterator[str]:
    """Yield what was meant as a token and is none: `[email_482715]`, `<EMAIL 482715>`."""
    if "_" in text or " " in text or "-" in text:
        for found in _NEARLY.finditer(text):
            if TOKEN.fullmatch(found[0]) is None:
                yield found[0]


def in_text(text: str) -> set[str]:
    """Return the tokens in a text, and what looks like one."""
    return {found[0] for found in TOKEN.finditer(text)} if "[" in text else set()


def may_be_in_json(written: bytes) -> bool:
    r"""Whether a text of this JSON, in UTF-8, may have a token in it, or a near miss.

    It errs on the safe side only, and takes 1 ns for a byte: to walk through what was parsed takes
    a hundred times as long. Of the escapes of JSON only `\u00..` stands for a character of a token.
    """
    if b"\\" in written and b"\\u00" in written:
        return True
    return _ENDING in written.translate(_ENDINGS)


def replaced(text: str, by: Callable[[str], str]) -> str:
    """Return a text in which something else stands for each token."""
    return TOKEN.sub(lambda found: by(found[0]), text) if "[" in text else text


def defused(token: str) -> str:
    """Return what is shown for text that only looks like a token: it names nothing any more."""
    return f"({token[1:-1]})"
