"""Trials: the example of a skill, run in a fresh sandbox whose door replays."""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from divingbell.border.border import Border
from divingbell.errors import DivingbellError, SkillRefused
from divingbell.gateway.context import CallContext
from divingbell.gateway.gateway import Gateway
from divingbell.models import Result
from divingbell.principal import Principal
from divingbell.skills.door import Door
from divingbell.skills.recordings import Recordings
from divingbell.skills.replay import ReplayDoor
from divingbell.skills.skill import Skill
from divingbell.text import visible

SECONDS = 30.0
"""For the example to run."""
PATIENCE = 60.0
"""Seconds for all of it: a place for the session, the session, and the run."""
MAX_WORDS = 2_000
HIDDEN = (
    "In a trial tools answer with tokens such as [EMAIL_482715] in the place of personal values, "
    "which are hidden there: the code must work with those too, or take the value as a parameter"
)

RunApart = Callable[[Principal, Door, str, float], Awaitable[Result]]
"""Runs code within so many seconds in a fresh session of this user, which has this door alone."""


class Trials:
    """Tries examples; for each user one at a time."""

    def __init__(
        self, gateway: Gateway, border: Border, recordings: Recordings, run: RunApart
    ) -> None:
        self._gateway = gateway
        self._border = border
        self._recordings = recordings
        self._run = run
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, skill: Skill, example: str, context: CallContext) -> frozenset[str]:
        """Run an example, and return the tools that it has called, as `server.tool`.

        Calls are answered as they were in the session of `context`, and count against its budgets.

        Raises:
            SkillRefused: it fails, or could not be run.
        """
        recorded = self._recordings.of(context.key)
        door = ReplayDoor(self._gateway, self._border, context, skill, recorded)
        result = await self._result(context.principal, door, example)
        if result.status != "ok":
            told = f"\n{HIDDEN}" if door.has_hidden else ""
            raise SkillRefused(f"its example fails: {words(result)}{told}")
        return frozenset(door.called)

    async def run_live(
        self,
        skill: Skill,
        example: str,
        principal: Principal,
        loading: Callable[[CallContext], None],
    ) -> tuple[Result, frozenset[str]]:
        """Run an example with the real tools, under all rules, and return the tools it has called.

        `loading` is told of the import, before anything of the skill comes in.

        Raises:
            SkillRefused: it could not be run.
        """
        door = Door(self._gateway, skill, loading)
        result = await self._result(principal, door, example)
        return result, frozenset(door.called)

    async def _result(self, principal: Principal, door: Door, example: str) -> Result:
        turn = self._turns.setdefault(principal.user, asyncio.Lock())
        try:
            async with asyncio.timeout(PATIENCE), turn:
                return await self._run(principal, door, example, SECONDS)
        except TimeoutError:
            raise SkillRefused(
                f"the example could not be run within {PATIENCE:g} s: save it again later, or with "
                "an example that takes less"
            ) from None
        except SkillRefused:
            raise
        except DivingbellError as error:
            raise SkillRefused(f"the example could not be run: {error}") from None


def words(result: Result) -> str:
    """Say how an example ended that did not end well."""
    if result.error is None:
        return f"it ended with {result.status}"
    return visible(str(result.error), MAX_WORDS)
