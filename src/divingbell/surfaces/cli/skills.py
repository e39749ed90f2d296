"""`divingbell skills`: the skills that are kept, listed, shown and looked after.

What a skill says is text of others: what a terminal would obey, or a person would not see, is made
visible.
"""

import json
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divingbell.amounts import amount
from divingbell.host.places import data_folder
from divingbell.review.reviewer import Reviewer
from divingbell.skills import folder as folders
from divingbell.skills.record import OFFERED, Kept, Record, Summary
from divingbell.skills.sharing import Sharing
from divingbell.skills.skill_file import MAX_FILE
from divingbell.skills.skills import Skills
from divingbell.skills.store import FOLDER_NAME, Stores
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.recording import recorded
from divingbell.surfaces.cli.terminal.notes import tell
from divingbell.text import one_line, visible

if TYPE_CHECKING:
    from divingbell.settings.config import Settings

MOST_SAID = 60
MOST_FOUND = 20
LEAST_COLUMNS = 80
MOST_LINE = 1_100
"""Characters of a line: a description has up to 1,024."""
EMPTY = """\
No skills are kept here. In `divingbell serve` code saves some with save_skill(name, function,
description); `divingbell skills add FOLDER` keeps one of yours, and `divingbell skills import
~/.claude/skills` takes over those of another agent."""


def stores() -> Stores:
    """Return the stores of this user of the machine."""
    return Stores(data_folder() / FOLDER_NAME)


def sharing(settings: "Settings") -> Sharing:
    """Return what publishes skills, and proposes those of others."""
    return Sharing(data_folder(), stores(), Reviewer(settings.review), settings.limits)


# Looking


def show_all(user: str, *, as_json: bool) -> int:
    """Print a user's skills, and what they are worth.

    Raises:
        SkillRefused: they can't be read.
    """
    _print_all(stores().of(user).summaries(), EMPTY, as_json=as_json)
    return exit_status.OK


async def search(query: str, user: str, settings: "Settings", *, as_json: bool) -> int:
    """Print the skills that fit a query, the best first.

    Raises:
        SkillRefused: they can't be read.
    """
    kept = Skills(stores(), lambda event: None, sharing(settings))  # nothing is changed
    found = await kept.search(query, MOST_FOUND, user=user)
    none = f"No skill fits {one_line(query, MOST_SAID)!r}: `divingbell skills list` shows all."
    _print_all(found, none, as_json=as_json)
    return exit_status.OK


def _print_all(found: list[Summary], none: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_summary(each) for each in found], indent=2))
    elif found:
        _print_table(found)
    else:
        print(none)


def _summary(found: Summary) -> dict[str, Any]:
    rate = found.usage.success_rate
    return asdict(found) | {
        "usage": asdict(found.usage) | {"success_rate": None if rate is None else round(rate, 4)}
    }


def _print_table(found: list[Summary]) -> None:
    width = max(len(each.name) for each in found)
    print(f"{'skill':<{width}}  version   uses  went well  tokens saved  description")
    for each in found:
        usage, rate = each.usage, each.usage.success_rate
        well = "–" if rate is None else f"{rate:.0%}"
        figures = f"{each.version:>7}  {usage.uses:>5,}  {well:>9}  {usage.tokens_saved:>12,}"
        said = one_line(_marked(each.record, each.description), MOST_LINE)
        print(_fitting(f"{each.name:<{width}}  {figures}  {said}"))


def _fitting(line: str) -> str:
    """A line, cut to the width of the terminal, where there is one."""
    if not sys.stdout.isatty():
        return line
    columns = max(shutil.get_terminal_size().columns, LEAST_COLUMNS)
    return line if len(line) <= columns else f"{line[: columns - 1]}…"


def _marked(record: Record, description: str) -> str:
    """A description, after the state of a skill that is not offered."""
    return description if record.state in OFFERED else f"[{record.state}] {description}"


def show(name: str, version: int | None, user: str, *, as_json: bool) -> int:
    """Print a skill.

    Raises:
        SkillMissing: there is none of that name, or no such version.
    """
    store = stores().of(user)
    kept, numbers = store.get(name, version), store.numbers(name)
    if as_json:
        print(json.dumps(_kept(kept, numbers), indent=2))
    else:
        _print(kept, numbers)
    return exit_status.OK


def _kept(kept: Kept, numbers: list[int]) -> dict[str, Any]:
    skill = kept.skill
    return {
        "name": skill.name,
        "version": kept.version,
        "current": kept.current,
        "versions": numbers,
        "description": skill.description,
        "digest": skill.digest,
        "module": skill.module,
        "saved_at": kept.saved_at,
        "record": asdict(kept.record),
        "skill_md": skill.skill_md.decode(),
        "files": {path: len(data) for path, data in skill.files.items()},
    }


def _print(kept: Kept, numbers: list[int]) -> None:
    skill, record = kept.skill, kept.record
    when = datetime.fromtimestamp(kept.saved_at, UTC).isoformat(" ", "seconds")
    offered = _standing(kept) if kept.current else "not the current one"
    print(f"{skill.name}, version {kept.version} of {max(numbers)} ({offered}), kept {when}")
    state = f"{record.state}: {record.reason}" if record.reason else record.state
    about = {
        "state": state,
        "from": " ".join(filter(None, (record.origin, record.source))),
        "key": record.key,
        "tools": ", ".join(record.tools),
        "labels": ", ".join(record.labels),
        "digest": skill.digest,
    }
    for name, said in about.items():
        if said:
            print(f"  {name:<7} {one_line(said, MOST_LINE)}")
    for path, data in skill.files.items():
        print(f"  {len(data):>9,} bytes  {one_line(path, MOST_LINE)}")
    print()
    print(visible(skill.skill_md.decode(), MAX_FILE))
    if skill.code is not None:
        print(f"--- {skill.script}\n{visible(skill.code, MAX_FILE)}")


def _standing(kept: Kept) -> str:
    if kept.record.state in OFFERED:
        return "offered"
    return f"not offered until `divingbell skills test {kept.skill.name}` goes well"


def export(name: str, folder: Path, version: int | None, user: str) -> int:
    """Write a skill out.

    Raises:
        SkillMissing: there is no such skill, version or folder.
        SkillRefused: there is something of that name in the folder already.
    """
    skill = stores().of(user).get(name, version).skill
    print(one_line(str(folders.write(skill, folder)), MOST_LINE))
    return exit_status.OK


# Changing, which is recorded where there is an audit log


@asynccontextmanager
async def changing(settings: "Settings") -> AsyncIterator[Skills]:
    """The skills, of whose changes the audit log is told before and after."""
    async with recorded(settings) as journal:
        yield Skills(stores(), journal.note, sharing(settings), "command", journal.intend)


async def add(folder: Path, user: str, settings: "Settings") -> int:
    """Keep the skill in a folder.

    Raises:
        SkillRefused: it can't be kept; the message says why.
        NotRecorded: there is an audit log, and it can't be written.
    """
    before = _digests(user)
    async with changing(settings) as skills:
        kept = await skills.add(folder, user=user)
    _tell(kept, _how(kept, before, "kept"))
    return exit_status.OK


async def take_over(folder: Path, user: str, settings: "Settings", *, skip_bad: bool) -> int:
    """Take over the skills of another agent. Raises: as `add`."""
    before = _digests(user)
    async with changing(settings) as skills:
        found = await skills.import_folder(
            folder.expanduser(), user=user, skip_bad=skip_bad, tell=tell
        )
    for kept in found:
        _tell(kept, _how(kept, before, "taken over"))
    new = [kept for kept in found if before.get(kept.skill.name) != kept.skill.digest]
    tell(f"{amount(len(new), 'skill')} taken over")
    return exit_status.OK


async def roll_back(name: str, version: int | None, user: str, settings: "Settings") -> int:
    """Offer an earlier version again. Raises: as `add`."""
    async with changing(settings) as skills:
        kept = await skills.rollback(name, version, user=user)
    is_offered = kept.record.state in OFFERED
    _tell(kept, "offered again" if is_offered else f"is the current one again, {_standing(kept)}")
    return exit_status.OK


async def remove(name: str, user: str, settings: "Settings") -> int:
    """Remove a skill. Raises: as `add`."""
    async with changing(settings) as skills:
        gone = await skills.remove(name, user=user)
    print(f"{name}: removed, with {amount(gone, 'version')}")
    return exit_status.OK


def _digests(user: str) -> dict[str, str]:
    return {each.name: each.digest for each in stores().of(user).summaries()}


def _how(kept: Kept, before: Mapping[str, str], done: str) -> str:
    """What was done with a skill: nothing, where just these files were the current ones."""
    return "is there already" if before.get(kept.skill.name) == kept.skill.digest else done


def _tell(kept: Kept, how: str) -> None:
    untried = "; its code has never run here" if kept.record.state == "untried" else ""
    print(f"{kept.skill.name}: version {kept.version} {how}{untried}")
