"""`backend = "auto"`: the first wall of a list that works on this machine, none below a minimum."""

import logging
from collections.abc import Callable

from divingbell.errors import DivingbellError, SandboxUnavailable
from divingbell.host.profile import Progress
from divingbell.models import Limits
from divingbell.sandbox.base import Backend, Sandbox
from divingbell.settings.config import WALLS, Settings

log = logging.getLogger("divingbell")


def allowed(settings: Settings) -> tuple[str, ...]:
    """The walls to try, in order: those of `backend_order` that are not below the minimum."""
    lowest = WALLS.index(settings.backend_minimum)
    return tuple(wall for wall in settings.backend_order if WALLS.index(wall) <= lowest)


class AutoBackend(Backend):
    """Tries one after the other by making a sandbox; the first that is made is not wasted."""

    def __init__(
        self, settings: Settings, make: Callable[[str], Backend], progress: Progress | None = None
    ) -> None:
        self._settings = settings
        self._make = make
        self._progress = progress or log.info
        self._first: Sandbox | None = None
        self.chosen: Backend | None = None

    async def start(self) -> None:
        refusals = []
        for wall in allowed(self._settings):
            backend: Backend | None = None
            try:
                backend = self._make(wall)
                await backend.start()
                self._first = await backend.create(self._settings.limits)
            except DivingbellError as error:
                refusals.append(f"{wall}: {error}")
                if backend is not None:
                    await backend.stop()
            except BaseException:
                if backend is not None:
                    await backend.stop()
                raise
            else:
                self.chosen = backend
                self._progress(f"backend: {wall}")
                for refusal in refusals:
                    log.info("not chosen: %s", refusal)
                return
        raise SandboxUnavailable(
            f"none of the backends that are allowed (backend_minimum is "
            f'"{self._settings.backend_minimum}") works on this machine:\n'
            + "\n".join(f"  {refusal}" for refusal in refusals)
        )

    async def create(self, limits: Limits) -> Sandbox:
        assert self.chosen is not None
        if self._first is not None and self._first.limits == limits:
            first, self._first = self._first, None
            return first
        return await self.chosen.create(limits)

    async def stop(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            await first.stop()
        if self.chosen is not None:
            await self.chosen.stop()
