"""Tokens of texts, counted without a network as OpenAI's o200k_base does.

Models of other makers count a little differently (within about 5 % for English text and JSON);
what matters here is the same measure for both ways of working.
"""

import asyncio
import threading
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from splintr import AnyTokenizer

from divingbell import logs

log = logs.logger("divingbell.journal")

ENCODING = "o200k_base"
MOST_COUNTED = 2 << 20
"""Characters. What follows is taken to be like what was counted."""
PIECE = 32 << 10
"""Characters counted at once, measured at about 10 ms: the tokenizer lets no other thread run
meanwhile."""
MAX_CACHE = 200_000
LOOK_EVERY = 1 << 20
"""Characters between two looks at the size of the tokenizer's cache. Measured: one takes 70 µs, as
long as counting 10,000 characters."""
CHARACTERS_PER_TOKEN = 4
"""For when there is no tokenizer."""

_loading = threading.Lock()
_uncounted = 0
"""Characters since the last look at the cache. What two threads count at once may be lost: the next
look is then a little later."""


class Count(NamedTuple):
    """A number of tokens, counted or estimated."""

    tokens: int
    estimated: bool = False
    """The text was too long to be counted whole, or could not be counted."""


def count(text: str) -> int:
    """Return the number of tokens of a text. A megabyte takes 0.2 to 0.6 s: see `count_later`."""
    return measure(text).tokens


def measure(text: str) -> Count:
    """Return the number of tokens of a text, and whether it is an estimate."""
    if not text:
        return Count(0)
    tokenizer = _tokenizer()
    if tokenizer is None:
        return Count(-(-len(text) // CHARACTERS_PER_TOKEN), estimated=True)
    considered = text[:MOST_COUNTED]
    tokens = start = 0
    while start < len(considered):
        end = _end_of_piece(considered, start)
        # Half a surrogate pair is no character, and what looks like a control token is text.
        piece = considered[start:end].encode("utf-8", "replace").decode()
        tokens += len(tokenizer.encode_ordinary(piece))
        start = end
    _look_at_cache(tokenizer, len(considered))
    if len(considered) == len(text):
        return Count(tokens)
    return Count(round(tokens * len(text) / len(considered)), estimated=True)


async def count_later(text: str) -> Count:
    """Return what `measure` does, without holding up the loop for long."""
    if len(text) <= PIECE and is_ready():
        return measure(text)
    return await asyncio.to_thread(measure, text)


def _look_at_cache(tokenizer: "AnyTokenizer", characters: int) -> None:
    """Keep the cache within bounds; each character may have added to it."""
    global _uncounted
    _uncounted += characters
    if _uncounted >= LOOK_EVERY:
        _uncounted = 0
        if tokenizer.cache_len > MAX_CACHE:
            tokenizer.clear_cache()


def _end_of_piece(text: str, start: int) -> int:
    """Return the end of a piece: of a line or a word if there is one; tokens do not span them."""
    end = start + PIECE
    if end >= len(text):
        return len(text)
    for sign in ("\n", " "):
        found = text.rfind(sign, start + 1, end)
        if found > 0:
            return found
    return end


def is_ready() -> bool:
    """Whether the tokenizer is loaded, which takes 0.15 s: else nothing is counted on the loop."""
    return _loaded.cache_info().currsize > 0


def _tokenizer() -> "AnyTokenizer | None":
    with _loading:
        return _loaded()


@cache
def _loaded() -> "AnyTokenizer | None":
    try:
        from splintr import Tokenizer

        return Tokenizer.from_pretrained(ENCODING)
    except Exception as error:
        log.warning("tokens are estimated, since the tokenizer can't be loaded: %s", error)
        return None
