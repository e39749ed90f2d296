"""Uses of skills, counted from the journal: how often, how they ended, and what was saved."""

from divingbell import logs
from divingbell.journal.events import CellEnded, JournalEvent, SessionEnded, SkillUsed
from divingbell.journal.write_behind import WriteBehind
from divingbell.skills.record import Usage
from divingbell.skills.store import Stores

log = logs.logger("divingbell.skills")

MOST_WAITING = 10_000
"""Uses that wait for a disk that hangs, or for the ends of their cells; more are not counted."""

_Use = tuple[str, str, Usage]
"""A user, a skill, and what is to be added."""


class Uses:
    """Adds uses to the stores, in a thread of its own. It never fails, it logs.

    A skill is used once in a cell that has imported it, however often it is called there.
    """

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._open: dict[tuple[str, int], dict[str, SkillUsed]] = {}
        """By session and cell, until that has ended."""
        self._behind = WriteBehind("divingbell-skills", self._write)

    def take(self, event: JournalEvent) -> None:
        """Note a use, and whether the cell that it was in went well; see the journal."""
        if isinstance(event, SkillUsed):
            if event.cell == 0:
                self._add(event, failed=False)
            elif len(self._open) < MOST_WAITING:
                self._open.setdefault((event.key, event.cell), {}).setdefault(event.name, event)
        elif isinstance(event, CellEnded):
            failed = event.result is None or event.result.status != "ok"
            for used in self._open.pop((event.key, event.cell), {}).values():
                self._add(used, failed=failed)
        elif isinstance(event, SessionEnded):
            for place in [place for place in self._open if place[0] == event.key]:
                del self._open[place]

    def _add(self, used: SkillUsed, *, failed: bool) -> None:
        added = Usage(1, int(failed), 0 if failed else used.tokens)
        if not self._behind.add((used.principal.user, used.name, added), MOST_WAITING):
            log.warning("a use of the skill %s is not counted", used.name)

    async def close(self) -> None:
        """Write what waits, for a limited time."""
        await self._behind.close()

    def _write(self, batch: list[_Use]) -> None:
        waiting: dict[str, dict[str, Usage]] = {}
        for user, name, added in batch:
            of_user = waiting.setdefault(user, {})
            of_user[name] = of_user.get(name, Usage()) + added
        for user, added_up in waiting.items():
            try:
                self._stores.of(user).add_usage(added_up)
            except Exception as error:  # whatever it is, the cells go on
                log.warning("uses of skills can't be counted: %s", error)
