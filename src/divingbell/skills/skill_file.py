"""SKILL.md, read and written: a head of YAML between two lines of `---`, then Markdown."""

import re
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from divingbell.errors import SkillRefused
from divingbell.skills import names
from divingbell.skills.skill import Skill

MAX_DESCRIPTION = 1_024
MAX_COMPATIBILITY = 500
MAX_LICENSE = 500
MAX_HEAD = 16_384
"""Characters of the head: by the specification about 2,000, and metadata."""
MAX_SKILL_FILE = 512 << 10
MAX_FILES = 500
MAX_FILE = 4 << 20
MAX_BYTES = 8 << 20
MAX_METADATA = 64
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
"""All that the specification has."""
_HEAD = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_TOOL = re.compile(r"[^\s,()]+(?:\([^()]*\))?")


def parse(skill_md: bytes, files: Mapping[str, bytes], *, foreign: bool = False) -> Skill:
    """Return the skill that a SKILL.md and the files beside it are.

    Args:
        skill_md: The file as it is.
        files: All others, by their paths.
        foreign: It was made for another agent: fields that the specification does not have are
            passed over, and stay in the file.

    Raises:
        SkillRefused: it is not in the Agent Skills format, or larger than a skill may be.
    """
    _check_size(skill_md, files)
    head, body = _split(skill_md)
    fields = _head().fields(head)
    if (unknown := fields.keys() - set(FIELDS)) and not foreign:
        raise SkillRefused(
            f"the head of SKILL.md has {', '.join(sorted(unknown))[:200]}, which the Agent Skills "
            f"format does not know: it has {', '.join(FIELDS)}. Put your own under metadata, "
            "or import it as one of another agent"
        )
    return Skill(
        name=names.check(_text(fields, "name", names.MAX_NAME, needed=True)),
        description=_text(fields, "description", MAX_DESCRIPTION, needed=True),
        skill_md=bytes(skill_md),
        body=body,
        license=_text(fields, "license", MAX_LICENSE),
        compatibility=_text(fields, "compatibility", MAX_COMPATIBILITY),
        allowed_tools=_tools(fields.get("allowed-tools", "")),
        metadata=_metadata(fields.get("metadata", {}), foreign=foreign),
        files={path: bytes(data) for path, data in sorted(files.items())},
    )


def make(
    name: str,
    description: str,
    body: str = "",
    files: Mapping[str, bytes] | None = None,
    *,
    license: str = "",
    compatibility: str = "",
    allowed_tools: Iterable[str] = (),
    metadata: Mapping[str, str] | None = None,
) -> Skill:
    """Return a skill of our own, its SKILL.md written.

    Raises:
        SkillRefused: something in it can't be written in the Agent Skills format.
    """
    head: dict[str, Any] = {"name": names.check(name), "description": description}
    given = {"license": license, "compatibility": compatibility, "metadata": dict(metadata or {})}
    head |= {field: value for field, value in given.items() if value}
    if tools := " ".join(allowed_tools):
        head["allowed-tools"] = tools
    text = f"---\n{_head().written(head)}---\n\n{body.strip()}\n"
    try:
        return parse(text.encode(), files or {})
    except UnicodeEncodeError:
        raise SkillRefused("SKILL.md can't be written in UTF-8: it has half characters") from None


def _head() -> ModuleType:
    # When it is needed: YAML takes 20 ms to load, and most have no skills.
    from divingbell.skills import head

    return head


def _check_size(skill_md: bytes, files: Mapping[str, bytes]) -> None:
    if len(skill_md) > MAX_SKILL_FILE:
        raise SkillRefused(
            f"SKILL.md has {len(skill_md):,} bytes; it may have {MAX_SKILL_FILE:,}: move parts of "
            "it into files under references/"
        )
    if len(files) > MAX_FILES:
        raise SkillRefused(f"the skill has {len(files):,} files; it may have {MAX_FILES}")
    names.check_paths(files)
    for path, data in files.items():
        if len(data) > MAX_FILE:
            raise SkillRefused(f"{path} has {len(data):,} bytes; a file may have {MAX_FILE:,}")
    if (total := sum(map(len, files.values()))) > MAX_BYTES:
        raise SkillRefused(f"the skill has {total:,} bytes; it may have {MAX_BYTES:,}")


def _split(skill_md: bytes) -> tuple[str, str]:
    try:
        text = skill_md.decode()
    except UnicodeDecodeError:
        raise SkillRefused("SKILL.md is no text in UTF-8") from None
    found = _HEAD.match(text)
    if found is None:
        raise SkillRefused(
            "SKILL.md has no head: it begins with a line ---, then name and description, then "
            "another line ---"
        )
    if len(found[1]) > MAX_HEAD:
        raise SkillRefused(
            f"the head of SKILL.md has {len(found[1]):,} characters; it may have {MAX_HEAD:,}"
        )
    return found[1], text[found.end() :].lstrip("\r\n")


def _text(fields: Mapping[str, Any], name: str, most: int, *, needed: bool = False) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise SkillRefused(f"{name} in SKILL.md must be a text")
    value = value.strip()
    if needed and not value:
        raise SkillRefused(f"SKILL.md needs a {name}")
    if len(value) > most:
        raise SkillRefused(f"{name} has {len(value):,} characters; it may have {most:,}")
    return value


def _tools(value: Any) -> tuple[str, ...]:
    """A text with spaces (some write commas) between the tools, or a list."""
    if isinstance(value, str):
        return tuple(_TOOL.findall(value))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise SkillRefused("allowed-tools in SKILL.md must be a text or a list of texts")


def _metadata(value: Any, *, foreign: bool) -> dict[str, str]:
    if value == "":
        return {}
    if not isinstance(value, dict) or len(value) > MAX_METADATA:
        raise SkillRefused(f"metadata in SKILL.md must be a table of at most {MAX_METADATA} texts")
    texts = {name: each for name, each in value.items() if isinstance(each, str)}
    if len(texts) < len(value) and not foreign:
        raise SkillRefused("what is under metadata in SKILL.md must be texts")
    return texts
