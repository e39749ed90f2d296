"""`divingbell skills publish`, `install` and `update`: skills that people share.

Nothing is kept that nobody has agreed to. What is shown is text of others, made visible.
"""

import os
import sys
import termios
from collections.abc import Iterator
from typing import TYPE_CHECKING

from divingbell.errors import ConfigError, SkillRefused
from divingbell.host import beside
from divingbell.host.signing_key import is_public_key
from divingbell.skills.installing import Proposal
from divingbell.skills.sharing import Wanted
from divingbell.surfaces.cli import exit_status, trusting
from divingbell.surfaces.cli.skills import changing, sharing
from divingbell.surfaces.cli.terminal.notes import tell
from divingbell.text import one_line

if TYPE_CHECKING:
    from divingbell.settings.config import Settings

MOST_LINE = 1_000
MAX_ANSWER = 4096
_STDIN = 0
_QUESTION = "Install this? [y/N] "
NONE_INSTALLED = """\
None of these skills came from a catalogue: `divingbell skills install NAME --from CATALOGUE` keeps
one that did."""


def check_key(key: str) -> None:
    """Raise ConfigError for what can't be a publisher's key."""
    if key and not is_public_key(key):
        raise ConfigError("--key is a publisher's key as it is shown: 32 bytes in base64")


async def publish(name: str, to: str, version: int | None, user: str, settings: "Settings") -> int:
    """Publish a skill.

    Raises:
        SkillRefused: it can't be published; the message says why.
        ConfigError: the key can't be used.
    """
    shared = sharing(settings)
    skill = shared.stores.of(user).get(name, version).skill
    done = await beside.run(lambda: shared.publish(skill, to, tell))
    said, place = done.statement, one_line(to, MOST_LINE)
    how = "published to" if done.is_new else "is in"
    print(f"{name}: version {said.version} {how} {place}{'' if done.is_new else ' already'}")
    print(f"  digest     {said.digest}")
    print(f"  publisher  {said.key}")
    tell("tell those who install it your key by another way: it is how they know that it is you")
    return exit_status.OK


async def install(
    name: str, place: str, wanted: Wanted, user: str, settings: "Settings", *, yes: bool
) -> int:
    """Show a skill of a catalogue, and keep it if the person agrees.

    Raises:
        SkillRefused: it is refused; the message says why.
        ConfigError: there is nobody to ask, or what was seen can't be read.
    """
    shared = sharing(settings)
    [proposal] = await beside.run(lambda: shared.propose(user, place, {name: wanted}))
    if isinstance(proposal, SkillRefused):
        raise proposal
    return await _decide(proposal, user, settings, yes=yes)


async def update(name: str, user: str, settings: "Settings", *, yes: bool) -> int:
    """Look for newer versions of skills that came from catalogues; what fails is told of each.

    Raises:
        SkillMissing: there is no such skill, or it came from no catalogue.
        ConfigError: there is nobody to ask, or what was seen can't be read.
    """
    shared, status = sharing(settings), exit_status.OK
    installed = shared.installed(user, name)
    if not installed:
        print(NONE_INSTALLED)
    for place, wanted in installed:
        found: list[Proposal | SkillRefused]
        try:
            found = await beside.run(lambda: shared.propose(user, place, wanted))  # noqa: B023
        except SkillRefused as error:
            found = [error]
        for proposal in found:
            try:
                if isinstance(proposal, SkillRefused):
                    raise proposal
                status = max(status, await _decide(proposal, user, settings, yes=yes))
            except SkillRefused as error:
                tell(str(error))
                status = exit_status.FAILED
    return status


async def _decide(proposal: Proposal, user: str, settings: "Settings", *, yes: bool) -> int:
    name = proposal.skill.name
    if proposal.is_there:
        print(f"{name}: version {proposal.offer.statement.version} is installed already")
        return exit_status.OK
    print("\n".join(_lines(proposal)), flush=True)
    if not _is_agreed(proposal, yes=yes):
        print(f"{name}: not installed")
        return exit_status.FAILED
    async with changing(settings) as skills:
        kept = await skills.agree(proposal, user)
    untried = "; its code has never run here" if kept.record.state == "untried" else ""
    print(f"{name}: installed as your version {kept.version}{untried}")
    return exit_status.OK


def _is_agreed(proposal: Proposal, *, yes: bool) -> bool:
    """Whether the person agrees, or has done so beforehand.

    Raises:
        SkillRefused: what was said beforehand is not enough.
        ConfigError: there is nobody to ask.
    """
    name, digest = proposal.skill.name, proposal.skill.digest
    if yes:
        if doubts := proposal.doubts:
            raise SkillRefused(
                f"{name}: --yes is not enough, because {' and '.join(doubts)}. Look at what is "
                f"shown; if you agree, name its digest: --yes --sha256 {digest}"
            )
        return True
    if trusting.asker() is None:
        raise ConfigError(
            "there is no terminal to ask at. Look at what is shown; if you agree, run it again "
            f"with --yes --sha256 {digest}"
        )
    termios.tcflush(_STDIN, termios.TCIFLUSH)  # what was typed before is no answer
    print(_QUESTION, end="", file=sys.stderr, flush=True)
    return os.read(_STDIN, MAX_ANSWER).strip().lower() in (b"y", b"yes")


# What is shown


def _lines(proposal: Proposal) -> Iterator[str]:
    said, skill = proposal.offer.statement, proposal.skill
    place = one_line(proposal.offer.catalogue, MOST_LINE)
    yield f"{skill.name}, version {said.version}, of {place}"
    about = {
        "digest": skill.digest,
        "publisher": f"{said.key} ({_standing(proposal)})",
        "says": skill.description,
        "license": skill.license,
        "tools": ", ".join(proposal.tools) or "none that it names",
        "replaces": _replaced(proposal),
    }
    for name, words in about.items():
        if words:
            yield f"  {name:<10} {one_line(words, MOST_LINE)}"
    yield from _files(proposal)
    yield from _review(proposal)


def _standing(proposal: Proposal) -> str:
    if proposal.known is not None and proposal.known.key == proposal.offer.statement.key:
        return "the key that you have agreed to"
    if proposal.known is not None:
        return f"NEW: until now it was {proposal.known.key}"
    if proposal.is_known_key:
        return "known: you have named it, or agreed to it for another skill of this catalogue"
    return "seen for the first time: ask the publisher whether it is theirs"


def _replaced(proposal: Proposal) -> str:
    before = proposal.replaces
    if before is None:
        return ""
    where = " ".join(filter(None, (before.record.origin, before.record.source)))
    return f"your version {before.version} ({where})"


def _files(proposal: Proposal) -> Iterator[str]:
    files = proposal.skill.all_files
    before = proposal.replaces.skill.all_files if proposal.replaces else files
    for path, data in files.items():
        mark = "new" if path not in before else "changed" if before[path] != data else ""
        yield f"  {len(data):>9,} bytes  {one_line(path, MOST_LINE)}  {mark}".rstrip()
    for path in sorted(before.keys() - files.keys()):
        yield f"  {'gone':>15}  {one_line(path, MOST_LINE)}"


def _review(proposal: Proposal) -> Iterator[str]:
    found = False
    for path, review in proposal.reviews.items():
        for finding in review.findings:
            found = True
            words = f"{path}, {finding} ({finding.action})"
            yield f"  review     {one_line(words, MOST_LINE)}"
    for path in proposal.unread:
        found = True
        yield f"  review     {one_line(path, MOST_LINE)} is not read: look at it yourself"
    for path in proposal.hiding:
        found = True
        yield f"  review     {one_line(path, MOST_LINE)} has characters that nobody sees"
    if not found:
        yield "  review     nothing was found"
