"""Names of arguments as a lenient server may read them.

`Owner`, `owner\\u200b`, `own-er` and `owner[0]` are other names for JSON, and the same one for a
server that folds case, trims, or passes its arguments on as a query. Whatever is decided by an
argument's name is decided for all its spellings.
"""

import re
import unicodedata

from divingbell.errors import ToolFailed

MAX_LENGTH = 1000
"""Characters of a name that is compared. Nobody's are longer, and folding takes its time."""
_ODD = re.compile(r"[\W_]+")
_TAIL = re.compile(r"[\0\[.]")
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝвкмнтαοριυκντ", "aeopcyxijshdqwbkmhtaopiukvt", "\u115f\u1160"
)
"""Cyrillic and Greek letters for those that they pass for; letters that nobody sees for nothing."""


def plain(name: str) -> str:
    """Return what is left of a name when case, accents, width and all but letters are folded.

    Raises:
        ToolFailed: it is longer than names are.
    """
    if len(name) > MAX_LENGTH:
        raise ToolFailed(
            f"the name of an argument has {len(name):,} characters, {MAX_LENGTH:,} are the most",
            "tool_arguments",
        )
    if not name.isascii():
        # Twice: an upper case may be made of others (`ı` is `I`), which have a form of their own.
        upper = unicodedata.normalize("NFKD", name).upper()
        name = unicodedata.normalize("NFKD", upper.casefold()).translate(_LOOKALIKES)
    return _ODD.sub("", name.casefold()) or name


def means(name: str, wanted: str) -> bool:
    """Return whether a server may take `name` for the one whose `plain` form is `wanted`.

    What follows a bracket, a dot or a zero byte is a part of the argument, or nothing.

    Raises:
        ToolFailed: it is longer than names are.
    """
    return plain(name) == wanted or plain(head(name)) == wanted


def head(name: str) -> str:
    """Return the argument that a name such as `owner[0]` or `owner.id` begins with."""
    return _TAIL.split(name, maxsplit=1)[0]
