"""User shares: sessions of one user that compute at the same time share what one of them has.

The kernel gives each session the same part of the processors. So whoever has thirty that spin has
thirty parts, and a cell of another waits for its turn behind all of them. Control groups can't be
moved below one of their user's, as sessions are sealed before anybody has opened them; but their
weights can be made so small that together they are those of one.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from divingbell.principal import Principal
from divingbell.sandbox.base import Sandbox

COMPUTING = 0.0005
"""Seconds of CPU time between two looks; a session that waits uses none."""
PATIENCE = 4
"""Looks without any, after which one that has computed is taken to wait. Measured on a busy
machine: one of thirty that spin can go without a turn from one look to the next."""


class UserShares:
    """The weights of sessions, looked at again and again. Those that wait have the whole weight, so
    that what they begin is quick."""

    def __init__(self) -> None:
        self._used: dict[Sandbox, float] = {}
        """CPU time at the last look, of sandboxes of users who have several."""
        self._lowered: set[Sandbox] = set()
        self._still: dict[Sandbox, int] = {}
        """Looks since one of the lowered has computed."""

    def look(self, sessions: Iterable[tuple[Principal, Sandbox]]) -> Iterator[None]:
        """Weigh all sessions anew, user by user; a step for each, so that others have their turn in
        between."""
        by_user: defaultdict[str, list[Sandbox]] = defaultdict(list)
        for principal, sandbox in sessions:
            by_user[principal.user].append(sandbox)
        several = {user: each for user, each in by_user.items() if len(each) > 1}
        known = {sandbox for each in by_user.values() for sandbox in each}
        self._lowered &= known
        before, self._used = self._used, {}
        alone = known.difference(*several.values())
        self._raise(alone)
        for sandboxes in several.values():
            computing = []
            for sandbox in sandboxes:
                used = self._used[sandbox] = sandbox.consumption().cpu_seconds
                if self._computes(sandbox, used - before.get(sandbox, used)):
                    computing.append(sandbox)
                yield
            self._raise(set(sandboxes).difference(computing if len(computing) > 1 else ()))
            for sandbox in computing if len(computing) > 1 else ():
                # Again each time: the kernel forgets the weight of a group that was made idle.
                sandbox.share(1 / len(computing))
                self._lowered.add(sandbox)
                yield

    def _computes(self, sandbox: Sandbox, seconds: float) -> bool:
        if seconds > COMPUTING:
            self._still.pop(sandbox, None)
            return True
        still = self._still.get(sandbox, 0) + 1
        if sandbox not in self._lowered or still >= PATIENCE:
            return False
        self._still[sandbox] = still
        return True

    def _raise(self, sandboxes: set[Sandbox]) -> None:
        for sandbox in self._lowered & sandboxes:
            sandbox.share(1.0)
        self._lowered -= sandboxes
        self._still = {each: looks for each, looks in self._still.items() if each in self._lowered}
