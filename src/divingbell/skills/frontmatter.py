"""The head of a SKILL.md as JSON, every field with the type that YAML gives it: as other readers
have it, who compare."""

import math
import re
from typing import Any

import yaml

from divingbell.errors import SkillRefused
from divingbell.skills import skill_file

_HEAD = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(skill_md: bytes) -> dict[str, Any]:
    """Return the head of a SKILL.md.

    Raises:
        SkillRefused: it is none, or JSON has no such values.
    """
    skill_file.parse(skill_md, {}, foreign=True)  # nothing in it grows or nests without end
    found = _HEAD.match(skill_md.decode())
    try:
        value = yaml.load(found[1], Loader=_Loader) if found else None
    except (yaml.YAMLError, ValueError):  # a date that is none, a number of ten thousand digits
        value = None
    if not isinstance(value, dict) or not _is_json(value):
        raise SkillRefused(
            "the head of SKILL.md holds values that JSON does not have, such as dates and numbers "
            "beyond 64 bits: write them in quotes"
        )
    return value


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(
            isinstance(key, str) and _is_json(key) and _is_json(each) for key, each in value.items()
        )
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):  # one of thousands of digits can't even be written as text
        return -(1 << 63) <= value < 1 << 63
    if isinstance(value, str):
        return _is_text(value)
    return value is None


def _is_text(value: str) -> bool:
    """Whether UTF-8 has it: YAML can escape halves of characters."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
