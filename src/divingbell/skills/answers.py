"""Answers to what code asks about skills, as they go into a session."""

import base64
import json
from typing import Any

from divingbell.gateway.context import Answer
from divingbell.skills.skill import Skill


def value(found: Any, note: str = "") -> Answer:
    """Return plain data as an answer."""
    return Answer(json.dumps(found, separators=(",", ":")).encode(), note=note)


def loaded(skill: Skill, *, files: bool = False) -> Answer:
    """Return the code of a skill, or all its files, as an answer."""
    contents = skill.all_files if files else {}
    shown = {path: base64.b64encode(data).decode() for path, data in contents.items()}
    return value({"name": skill.name, "code": skill.code, "files": shown})
