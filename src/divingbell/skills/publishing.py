"""Publishing: a skill is signed, and put into a catalogue as its next version."""

from dataclasses import dataclass

from divingbell.errors import SkillRefused
from divingbell.host.signing_key import SigningKey
from divingbell.skills import statement
from divingbell.skills.catalogue import Catalogue
from divingbell.skills.seen import Seen
from divingbell.skills.skill import Skill
from divingbell.skills.statement import Statement


@dataclass(frozen=True, slots=True)
class Published:
    """What came of it."""

    statement: Statement
    is_new: bool
    """False if the catalogue had just these files already."""


def publish(skill: Skill, catalogue: Catalogue, key: SigningKey, seen: Seen) -> Published:
    """Put a skill into a catalogue, signed. It blocks: call it in a thread.

    Raises:
        SkillRefused: somebody else's skill has that name there, or it can't be written.
        ConfigError: what was seen of catalogues can't be read or written.
    """
    with catalogue.reading():
        there = catalogue.said(skill.name)
        if there is not None and there.key != key.public:
            raise SkillRefused(
                f"{skill.name} in {catalogue.place} is published with another key, {there.key}, "
                f"and yours is {key.public}: publish yours under another name, or use that key"
            )
        if there is not None and there.digest == skill.digest and _is_whole(catalogue, skill.name):
            return Published(there, is_new=False)
        known = seen.of(catalogue.place, skill.name)
        before = max(there.version if there else 0, known.newest if known else 0)
        said = statement.sign(skill.name, before + 1, skill.digest, key)
        catalogue.publish(skill, said)
    seen.remember(catalogue.place, said)
    return Published(said, is_new=True)


def _is_whole(catalogue: Catalogue, name: str) -> bool:
    """Whether the files are those of the statement: else publishing mends them."""
    try:
        catalogue.offer(name)
    except SkillRefused:
        return False
    return True
