"""The head of a SKILL.md: a small table in YAML, read without anything that YAML can do besides.

All scalars are texts: `yes`, `1.0` and a date stay what was written. Anchors, aliases and tags are
refused, so nothing grows when it is read; duplicate keys too, which readers take differently.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from divingbell.errors import SkillRefused

MAX_NESTING = 4
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_ONE_LINE = 1_000_000


def fields(head: str) -> dict[str, Any]:
    """Return the fields of a head: texts, and lists and tables of texts.

    Raises:
        SkillRefused: it is no YAML, or more than a plain table.
    """
    try:
        _check_events(head)
        value = _plain(yaml.compose(head, Loader=_Loader))
    except yaml.YAMLError as error:
        raise SkillRefused(f"the head of SKILL.md is no YAML: {_first_line(error)}") from None
    if not isinstance(value, dict):
        raise SkillRefused("the head of SKILL.md has no fields: it needs name and description")
    return value


def written(table: Mapping[str, Any]) -> str:
    """Return a table as the head of a SKILL.md.

    Raises:
        SkillRefused: something in it can't be written there.
    """
    try:
        text: str = yaml.dump(
            dict(table), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_ONE_LINE
        )
    except (yaml.YAMLError, UnicodeEncodeError) as error:
        raise SkillRefused(f"SKILL.md can't be written: {_first_line(error)}") from None
    if "---" in text:
        raise SkillRefused(
            "there is --- in the head of SKILL.md, where some readers take it for the end: "
            "write it another way"
        )
    return text


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
        if depth > MAX_NESTING:
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


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it can't be read"])[0][:200]
