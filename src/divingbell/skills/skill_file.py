"""SKILL.md, read and written: a head of YAML between two lines of `---`, then Markdown.

All scalars of the head are texts: `yes`, `1.0` and a date stay what was written. Anchors, aliases
and tags are refused, so nothing grows when it is read; duplicate keys too, which readers take
differently.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

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
_MAX_NESTING = 4
_HEAD = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_TOOL = re.compile(r"[^\s,()]+(?:\([^()]*\))?")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


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
    fields = _fields(head)
    if (unknown := fields.keys() - set(FIELDS)) and not foreign:
        raise SkillRefused(
            f"the head of SKILL.md has {', '.join(sorted(unknown))[:200]}, which the Agent Skills "
            f"format does not know: it has {', '.join(FIELDS)}. Put your own under metadata"
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
    try:
        written = yaml.dump(
            head, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000
        )
        if "---" in written:
            raise SkillRefused(
                "there is --- in the head of SKILL.md, where some readers take it for the end: "
                "write it another way"
            )
        text = f"---\n{written}---\n\n{body.strip()}\n"
        return parse(text.encode(), files or {})
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise SkillRefused(f"SKILL.md can't be written: {_first_line(error)}") from None


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


def _fields(head: str) -> dict[str, Any]:
    try:
        _check_events(head)
        value = _plain(yaml.compose(head, Loader=_Loader))
    except yaml.YAMLError as error:
        raise SkillRefused(f"the head of SKILL.md is no YAML: {_first_line(error)}") from None
    if not isinstance(value, dict):
        raise SkillRefused("the head of SKILL.md has no fields: it needs name and description")
    return value


def _check_events(head: str) -> None:
    """Refuse what could grow or nest without end, before anything is built of it."""
    depth = 0
    for event in yaml.parse(head, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise SkillRefused(
                "the head of SKILL.md has anchors or aliases (& and *): spell it out"
            )
        if getattr(event, "tag", None):
            raise SkillRefused("the head of SKILL.md has tags (!): write plain texts")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_NESTING:
            raise SkillRefused("the head of SKILL.md is nested too deep: its fields are texts")


def _plain(node: yaml.Node | None) -> Any:
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not name or name in found:
                raise SkillRefused(f"SKILL.md has the key {name[:80]!r} twice, or an empty one")
            found[name] = _plain(value)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    return "" if node is None else node.value


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


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it can't be read"])[0][:200]
