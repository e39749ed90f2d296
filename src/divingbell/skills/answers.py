"""Answers to what code asks about skills, as they go into a session."""

import base64
import json
from typing import Any

from divingbell.gateway.context import Answer
from divingbell.shares import weight
from divingbell.skills.skill import Skill

PIECE = 3 << 16
"""Bytes that are encoded at a time, in a fraction of a millisecond; a multiple of three."""


def value(found: Any, note: str = "") -> Answer:
    """Return plain data as an answer."""
    return Answer(json.dumps(found, separators=(",", ":")).encode(), note=note)


async def loaded(skill: Skill, *, files: bool = False) -> Answer:
    """Return the code of a skill, or all its files, as an answer."""
    if not files:
        return value({"name": skill.name, "code": skill.code, "files": {}})
    return Answer(await weight.in_thread(lambda: _with_files(skill)))


def _with_files(skill: Skill) -> bytes:
    """Write what `value` would, in pieces: one call of C for 8 MB holds the event loop too."""
    head = json.dumps({"name": skill.name, "code": skill.code}, separators=(",", ":")).encode()
    parts = [head[:-1], b',"files":{']
    for number, (path, data) in enumerate(skill.all_files.items()):
        parts += [b"," if number else b"", json.dumps(path).encode(), b':"']
        parts += [
            base64.b64encode(data[start : start + PIECE]) for start in range(0, len(data), PIECE)
        ]
        parts.append(b'"')
    return b"".join([*parts, b"}}"])
