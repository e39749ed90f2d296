"""The skills of all users, for a program: listed, searched, added, removed, rolled back."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Literal

from divingbell import logs
from divingbell.errors import SkillRefused
from divingbell.host import beside
from divingbell.journal.events import JournalEvent, SkillChanging, SkillRemoved, SkillSaved
from divingbell.models import Result
from divingbell.principal import Principal
from divingbell.skills import folder as folders
from divingbell.skills import names
from divingbell.skills.installing import Proposal
from divingbell.skills.publishing import Published
from divingbell.skills.record import Kept, Record, Summary, first_record
from divingbell.skills.search import MAX_LIMIT, Searches
from divingbell.skills.sharing import Sharing, Wanted
from divingbell.skills.skill import Skill
from divingbell.skills.store import Stores
from divingbell.text import one_line

log = logs.logger("divingbell.skills")

MAX_AT_ONCE = 256 << 20
"""Bytes of all skills that are taken over together: they are in memory until all are read."""
MOST_REASON = 1_000
MOST_REASONS = 5
"""Skills of a folder that can't be taken over and are named one by one."""


Tester = Callable[[str, str], Awaitable[Result]]
Change = Literal["save", "rollback", "remove"]


async def _unasked(event: SkillChanging) -> None:
    """Nobody has to keep it."""


class Skills:
    """The skills that are kept on this machine, each user's by themselves.

    Every method takes the `user` whose skills are meant; without one they are those of sessions
    that no user is named for. All raise `SkillRefused` where the skills can't be read or written,
    and those that change something `NotRecorded` where there is an audit log that can't be.
    """

    def __init__(
        self,
        stores: Stores,
        tell: Callable[[JournalEvent], None],
        sharing: Sharing,
        client: str = "library",
        intend: Callable[[SkillChanging], Awaitable[None]] = _unasked,
    ) -> None:
        self.stores = stores
        self.sharing = sharing
        self.searches = Searches(stores)
        self._tell = tell
        self._intend = intend
        self._client = client
        self.tester: Tester | None = None
        """Runs the example of a user's skill; None where skills are off."""

    async def test(self, name: str, *, user: str | None = None) -> Result:
        """Run the example of a skill in a fresh session with the real tools; return the result.

        Rules, budgets and approvals hold as for any code. One that went well is offered again.

        Raises:
            SkillMissing: there is none of that name.
            SkillRefused: it has no example, or skills are off.
        """
        if self.tester is None:
            raise SkillRefused('skills are off here: turn them on with skills = "on"')
        return await self.tester(name, user or "")

    async def get(self, name: str, version: int | None = None, *, user: str | None = None) -> Kept:
        """Return a version of a skill, with all its files; without a number the one offered.

        Raises:
            SkillMissing: there is none of that name, or no such version.
        """
        return await asyncio.to_thread(self.stores.of(user or "").get, name, version)

    async def versions(self, name: str, *, user: str | None = None) -> list[Summary]:
        """Return all versions of a skill, the oldest first, as `list` does.

        Raises:
            SkillMissing: there is none of that name.
        """
        return await asyncio.to_thread(self.stores.of(user or "").versions, name)

    async def search(
        self, query: str, limit: int = 10, *, user: str | None = None
    ) -> list[Summary]:
        """Return the skills that fit a query best and are offered, the best first."""
        return await self.searches.of(user or "").find(query, min(limit, MAX_LIMIT))

    async def add(self, skill: Skill | str | Path, *, user: str | None = None) -> Kept:
        """Keep a skill, or the one in a folder, as a new version, which is offered from now on.

        Its code is not run.

        Raises:
            SkillMissing: there is no such folder, or no SKILL.md in it.
            SkillRefused: it is not in the Agent Skills format, or larger than a skill may be.
        """
        source = ""
        if not isinstance(skill, Skill):
            path = Path(skill)
            source, skill = str(path.absolute()), await asyncio.to_thread(folders.read, path)
        record = await asyncio.to_thread(first_record, "added", skill, source)
        [kept] = await self.keep([(skill, record)], user or "")
        return kept

    async def import_folder(
        self,
        folder: str | Path,
        *,
        user: str | None = None,
        skip_bad: bool = False,
        tell: Callable[[str], None] = log.warning,
    ) -> list[Kept]:
        """Take over skills that were made for another agent, as they are: all or none.

        They are those right below the folder, such as `~/.claude/skills`, or that folder itself.
        Their code is not run. With `skip_bad` those that are no skills are left out, and `tell`
        hears why: by default the log does.

        Raises:
            SkillMissing: there is no such folder, or no skill in it.
            SkillRefused: one of them is no skill, or larger than one may be; it says which.
        """
        found = await asyncio.to_thread(_read_all, Path(folder), tell if skip_bad else None)
        return await self.keep(found, user or "")

    async def export(
        self,
        name: str,
        folder: str | Path,
        version: int | None = None,
        *,
        user: str | None = None,
    ) -> Path:
        """Write a skill out into a folder that is there, and return its own folder.

        Raises:
            SkillMissing: there is no such skill, version or folder.
            SkillRefused: there is something of that name in the folder already.
        """
        kept = await self.get(name, version, user=user)
        return await asyncio.to_thread(folders.write, kept.skill, Path(folder))

    async def publish(
        self, name: str, to: str, version: int | None = None, *, user: str | None = None
    ) -> Published:
        """Put a skill into a catalogue, signed with the key of this machine's user.

        `to` is a folder, or the address of a git repository. The key is made when there is none.

        Raises:
            SkillMissing: there is no such skill or version.
            SkillRefused: somebody else's skill has that name there, or it can't be written.
            ConfigError: the key can't be used.
        """
        kept = await self.get(name, version, user=user)
        return await beside.run(lambda: self.sharing.publish(kept.skill, to, log.warning))

    async def install(
        self,
        name: str,
        source: str,
        *,
        sha256: str = "",
        key: str = "",
        user: str | None = None,
    ) -> Kept:
        """Keep a skill of a catalogue, a folder or a git repository. Its code is not run.

        `sha256` is its digest, by which somebody says that they have looked at these very files;
        `key` is the publisher's. Without the digest it is kept only where nobody has to decide:
        the key is known, and the review has no question.

        Raises:
            SkillMissing: there is none of that name.
            SkillRefused: it is not what was signed, seen before or named, or a person must look at
                it first; the message says why, and has the digest.
            ConfigError: what was seen of catalogues can't be read.
        """
        wanted = {name: Wanted(key, sha256)}
        [found] = await beside.run(lambda: self.sharing.propose(user or "", source, wanted))
        if isinstance(found, SkillRefused):
            raise found
        return await self._installed(found, user or "")

    async def update(self, name: str = "", *, user: str | None = None) -> list[Kept]:
        """Keep newer versions of skills that came from catalogues, of one or of all; return them.

        Raises:
            SkillMissing: there is no such skill that came from a catalogue.
            SkillRefused: one was refused, as by `install`; those before it are kept.
        """
        kept = []
        for place, wanted in await asyncio.to_thread(self.sharing.installed, user or "", name):
            found = await beside.run(lambda: self.sharing.propose(user or "", place, wanted))  # noqa: B023
            for each in found:
                if isinstance(each, SkillRefused):
                    raise each
                if not each.is_there:
                    kept.append(await self._installed(each, user or ""))
        return kept

    async def _installed(self, proposal: Proposal, user: str) -> Kept:
        if proposal.is_there and proposal.replaces is not None:
            return proposal.replaces
        if doubts := proposal.doubts:
            raise SkillRefused(
                f"{proposal.skill.name} was not installed, because {' and '.join(doubts)}. Look at "
                f"it with `divingbell skills install`; if you agree, name its digest: sha256="
                f"{proposal.skill.digest!r}"
            )
        return await self.agree(proposal, user)

    async def agree(self, proposal: Proposal, user: str) -> Kept:
        """Keep a skill of a catalogue that somebody has agreed to.

        Raises:
            SkillRefused: the rules of the review forbid it.
            ConfigError: what was seen of catalogues can't be written.
        """
        await self._changing(proposal.skill.name, "save", user)  # its key is remembered then, too
        record = await asyncio.to_thread(self.sharing.installer(user).agree, proposal)
        [kept] = await self._keep([(proposal.skill, record)], user)
        return kept

    async def rollback(
        self, name: str, version: int | None = None, *, user: str | None = None
    ) -> Kept:
        """Offer an earlier version again; without a number the one before what is offered.

        Raises:
            SkillMissing: there is no such version.
        """
        name = names.of_module(name)
        await self._changing(name, "rollback", user or "")
        kept = await asyncio.to_thread(self.stores.of(user or "").rollback, name, version)
        self._tell(self._saved(kept, user or "", "rollback"))
        return kept

    async def remove(self, name: str, *, user: str | None = None) -> int:
        """Remove a skill with all its versions, and return how many there were.

        Raises:
            SkillMissing: there is none of that name.
        """
        name = names.of_module(name)
        await self._changing(name, "remove", user or "")
        gone = await asyncio.to_thread(self.stores.of(user or "").remove, name)
        self._tell(SkillRemoved(Principal(user or "", client=self._client), name, gone))
        return gone

    async def keep(self, given: Iterable[tuple[Skill, Record]], user: str) -> list[Kept]:
        """Keep skills with what is known of them, all or none.

        Raises:
            SkillRefused: this user has as many skills, versions or bytes as one may have.
        """
        rows = [*given]
        for skill, _ in rows:
            await self._changing(skill.name, "save", user)
        return await self._keep(rows, user)

    async def _keep(self, rows: list[tuple[Skill, Record]], user: str) -> list[Kept]:
        """Every skill from outside of a session passes here."""
        kept = await asyncio.to_thread(self.stores.of(user).save_all, rows)
        for each in kept:
            self._tell(self._saved(each, user, each.record.origin))
        return kept

    async def list(self, *, user: str | None = None) -> list[Summary]:
        """Return all skills, in the order of their names, with their uses."""
        return await asyncio.to_thread(self.stores.of(user or "").summaries)

    async def _changing(self, name: str, change: Change, user: str) -> None:
        await self._intend(SkillChanging(Principal(user, client=self._client), name, change))

    def _saved(self, kept: Kept, user: str, origin: str) -> SkillSaved:
        who = Principal(user, client=self._client)
        return SkillSaved(who, kept.skill.name, kept.version, kept.skill.digest, origin)


def _read_all(folder: Path, tell: Callable[[str], None] | None) -> list[tuple[Skill, Record]]:
    """Read all skills in a folder; where some can't be, say so of each, and take none; or tell that
    those are left out."""
    read, wrong = [], []
    size = 0
    for path in folders.find(folder):
        try:
            read.append(folders.read(path, foreign=True))
            size += sum(map(len, read[-1].all_files.values()))
        except SkillRefused as error:
            wrong.append(f"{path.name}: {error}")
        if size > MAX_AT_ONCE:
            raise SkillRefused(
                f"the skills in {folder} have more than {MAX_AT_ONCE >> 20} MB: import some of "
                "them at a time"
            )
    if tell is not None:
        for each in wrong:
            tell(f"left out: {one_line(each, MOST_REASON)}")
    elif wrong:
        more = f"; and {len(wrong) - MOST_REASONS} more" if len(wrong) > MOST_REASONS else ""
        raise SkillRefused(
            f"nothing was taken over: {'; '.join(wrong[:MOST_REASONS])}{more}. Mend what is said "
            "of each, or leave them out with --skip-bad (skip_bad=True)"
        )
    if not read:
        raise folders.no_skill(folder)
    source = str(folder.absolute())
    return [(skill, first_record("imported", skill, source)) for skill in read]
