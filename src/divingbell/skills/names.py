"""Names of skills, and of the files in them: one list of what may be, in one place.

A name becomes a folder on disk, a module in the sandbox and a part of an address. What is not on
this list is none of the three.
"""

import keyword
import re
import sys
from collections.abc import Iterable

from divingbell.errors import SkillRefused

MAX_NAME = 64
MAX_PART = 255
"""Bytes in the name of one file, as file systems have it."""
MAX_DEPTH = 8
SKILL_FILE = "SKILL.md"
LEFT_OUT = frozenset({".git", "__pycache__", ".DS_Store"})
"""What lies about in folders and is never part of a skill: bytecode must not come in as a file."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")
_TAKEN = frozenset({"skills", "servers", "tools", "divingbell", "divingbell_inside"})


def check(name: str) -> str:
    """Return the name of a skill.

    Raises:
        SkillRefused: it can't be one; the message says what can.
    """
    if not isinstance(name, str) or len(name) > MAX_NAME or not _NAME.fullmatch(name):
        shown = repr(name) if len(str(name)) <= MAX_NAME else f"one of {len(str(name))} characters"
        raise SkillRefused(
            f"the name of a skill can't be {shown}: use up to {MAX_NAME} lowercase letters (a-z) "
            "and digits, with single hyphens between them, such as top-customers (in code "
            "top_customers)"
        )
    module = name.replace("-", "_")
    if module in sys.stdlib_module_names or module in _TAKEN:
        raise SkillRefused(
            f"a skill can't be called {name}: a module of Python or of the sandbox has that name. "
            f"Choose another, such as my-{name} (in code my_{module})"
        )
    return name


def module(name: str) -> str:
    """Return the module that a skill is imported as: `top_customers` for `top-customers`."""
    found = name.replace("-", "_")
    if found[:1].isdigit():
        return f"_{found}"
    return f"{found}_" if keyword.iskeyword(found) else found


def of_module(found: str) -> str:
    """Return the name of the skill that is imported as a module; names may be given as well.

    Raises:
        SkillRefused: no skill can have that name.
    """
    name = str(found).replace("_", "-")
    if name.startswith("-") and name[1:2].isdigit():
        name = name[1:]
    elif name.endswith("-") and keyword.iskeyword(name[:-1]):
        name = name[:-1]
    return check(name)


def check_paths(paths: Iterable[str]) -> None:
    """Check the paths of a skill's files, SKILL.md not among them.

    Raises:
        SkillRefused: one leads elsewhere, can't be written everywhere, or is in another's way.
    """
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        parts = _parts(path)
        folded = path.casefold()
        if folded in seen or folded == SKILL_FILE.casefold():
            raise SkillRefused(f"there are two files of the name {path!r} in the skill")
        seen.add(folded)
        folders.update("/".join(parts[:end]).casefold() for end in range(1, len(parts)))
    if clash := seen & folders:
        raise SkillRefused(f"{min(clash)!r} is both a file and a folder of the skill")


def _parts(path: str) -> list[str]:
    parts = path.split("/") if isinstance(path, str) else []
    if not parts or len(parts) > MAX_DEPTH or not all(map(_is_fit, parts)):
        shown = repr(path) if len(str(path)) <= MAX_PART else "one of the paths"
        raise SkillRefused(
            f"{shown} can't be a file of a skill: use a path below its folder such as "
            f"scripts/report.py, at most {MAX_DEPTH} names deep"
        )
    return parts


def _is_fit(part: str) -> bool:
    if part in {"", ".", ".."} or part in LEFT_OUT or _UNFIT.search(part):
        return False
    return len(part.encode()) <= MAX_PART
