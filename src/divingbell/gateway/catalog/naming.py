"""Names of servers, tools and parameters as Python identifiers.

A server may call its tools whatever it likes: `auth-method`, `class`, `x(): import os #`,
`../../x`, ten thousand characters, nothing. What comes out is plain ASCII that is safe as a
name in source code and as the name of a file.
"""

import hashlib
import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable

MAX_LENGTH = 64
CONSIDERED = 512
"""Characters of a name that are looked at; the rest only counts for the digest."""

WRAPPER_NAMES = frozenset({"call", "UNSET"})
"""Names that a wrapper's own code needs. No parameter may have one of these, and all others may."""

RESERVED = WRAPPER_NAMES | {
    # the rest of a wrapper module
    *("Any", "Literal", "NotRequired", "TypedDict", "bool", "dict", "float", "int", "list", "str"),
    # what each package has besides its tools
    *("resources", "read_resource", "prompts", "get_prompt", "serve_package", "README"),
    # what the code inside imports the packages by
    *("servers", "divingbell_inside"),
}

_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def is_safe(name: str) -> bool:
    """Tell whether a name can stand in source code and as a file's name as it is."""
    return (
        len(name) <= MAX_LENGTH
        and _SAFE.fullmatch(name) is not None
        and not keyword.iskeyword(name)
    )


def identifier(name: str, reserved: Collection[str] = RESERVED) -> str:
    """Return a Python identifier for any text; the same one each time.

    It is ASCII, has no underscore in front, is no keyword and none of `reserved`. A name that is
    fine already stays as it is. Soft keywords (`type`, `match`) are fine: they are legal
    everywhere that a name of ours stands, and `type` is what half of all parameters are called.
    """
    if is_safe(name) and name not in reserved:
        return name
    plain = unicodedata.normalize("NFKD", name[:CONSIDERED]).encode("ascii", "ignore").decode()
    result = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_")
    if not result:
        result = f"unnamed_{_digest(name, 6)}" if name else "unnamed"
    if result[0].isdigit():
        result = f"n_{result}"
    if len(result) > MAX_LENGTH or len(name) > CONSIDERED:
        result = f"{result[: MAX_LENGTH - 9].rstrip('_')}_{_digest(name, 8)}"
    if keyword.iskeyword(result) or result in reserved:
        result += "_"
    return result


def unique(
    names: Iterable[str], taken: Collection[str] = (), reserved: Collection[str] = RESERVED
) -> dict[str, str]:
    """Return an identifier of its own for each name, none of them in `taken`.

    The order of the names has no influence. Of several names that would get the same identifier,
    one that *is* that identifier keeps it. The others get a piece of their digest behind it, all
    of them: the plain name must not mean another tool when one joins or leaves.
    """
    wanted: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        wanted.setdefault(identifier(name, reserved), []).append(name)
    found: dict[str, str] = {}
    used = set(taken)
    colliding: list[tuple[str, str]] = []
    for plain, group in wanted.items():
        owner = group[0] if len(group) == 1 else plain if plain in group else None
        if owner is not None and plain not in taken:
            found[owner] = plain
            used.add(plain)
        else:
            owner = None
        colliding += ((name, plain) for name in group if name != owner)
    for name, plain in sorted(colliding):
        length = 4
        while (longer := f"{plain[: MAX_LENGTH - length - 1]}_{_digest(name, length)}") in used:
            length += 1
        found[name] = longer
        used.add(longer)
    return found


def _digest(name: str, length: int) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:length]
