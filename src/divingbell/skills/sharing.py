"""Skills that people share: put into catalogues, and proposed from them. All of it blocks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import SkillMissing, SkillRefused
from divingbell.models import Limits
from divingbell.review.reviewer import Reviewer
from divingbell.skills import names, publishing, statement
from divingbell.skills.catalogue import open_catalogue
from divingbell.skills.installing import Installer, Proposal
from divingbell.skills.record import Summary
from divingbell.skills.seen import Seen
from divingbell.skills.skill import Skill
from divingbell.skills.store import Stores
from divingbell.text import one_line


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody has said of a skill beforehand."""

    key: str = ""
    """The publisher's key."""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Sharing:
    """Publishes skills of all users of this machine, and proposes those of others."""

    data: Path
    """The folder with the key, and with what was seen of catalogues."""
    stores: Stores
    reviewer: Reviewer
    limits: Limits

    def publish(self, skill: Skill, to: str, tell: Callable[[str], None]) -> publishing.Published:
        """Put a skill into a catalogue, signed; `tell` hears of a key that had to be made.

        Raises:
            As `Skills.publish`.
        """
        key = statement.load_key(self.data, tell)
        catalogue = open_catalogue(to, self.data)
        return publishing.publish(skill, catalogue, key, Seen(self.data))

    def installer(self, user: str) -> Installer:
        """Return what looks at skills for a user."""
        return Installer(self.stores.of(user), Seen(self.data), self.reviewer, self.limits)

    def propose(
        self, user: str, place: str, wanted: Mapping[str, Wanted]
    ) -> list[Proposal | SkillRefused]:
        """Return a proposal, or why there is none, for each skill; the catalogue is read once.

        Raises:
            SkillRefused: the catalogue can't be read.
            ConfigError: what was seen of catalogues can't be read.
        """
        installer, catalogue = self.installer(user), open_catalogue(place, self.data)
        found: list[Proposal | SkillRefused] = []
        with catalogue.reading():
            for name, each in wanted.items():
                try:
                    found.append(
                        installer.propose(catalogue, name, key=each.key, digest=each.digest)
                    )
                except SkillRefused as error:
                    found.append(error)
        return found

    def installed(self, user: str, name: str = "") -> list[tuple[str, dict[str, Wanted]]]:
        """Return the catalogues that a user's skills came from, and what is wanted of each now.

        Raises:
            SkillMissing: there is none of that name that came from a catalogue.
            SkillRefused: no skill can have that name.
        """
        name = names.of_module(name) if name else ""
        found: dict[str, dict[str, Wanted]] = {}
        for each in self.stores.of(user).summaries():
            if each.record.origin == "catalogue" and name in ("", each.name):
                found.setdefault(each.record.source, {})[each.name] = Wanted(self._key(each))
        if name and not found:
            raise SkillMissing(
                f"there is no skill {one_line(name, 100)} that came from a catalogue"
            )
        return list(found.items())

    def _key(self, installed: Summary) -> str:
        """The key that it was installed with, should the record of what was seen be gone."""
        known = Seen(self.data).of(installed.record.source, installed.name)
        return "" if known is not None else installed.record.key
