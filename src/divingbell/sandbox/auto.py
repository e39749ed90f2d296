"""`backend = "auto"`: the first backend that works on this machine, none below a minimum."""

from collections.abc import Callable

from divingbell import logs
from divingbell.errors import DivingbellError, SandboxUnavailable
from divingbell.host.profile import Progress
from divingbell.models import Limits
from divingbell.sandbox import registry
from divingbell.sandbox.base import Backend, Sandbox
from divingbell.sandbox.registry import Row
from divingbell.settings.config import Settings

log = logs.logger("divingbell")


class AutoBackend(Backend):
    """A backend that stands for the first of several that works.

    It tries one after the other by making a sandbox; the first that is made is not wasted.
    """

    def __init__(
        self, settings: Settings, make: Callable[[Row], Backend], progress: Progress | None = None
    ) -> None:
        self._settings = settings
        self._make = make
        self._progress = progress or log.info
        self._first: Sandbox | None = None
        self.chosen: Backend | None = None
        self.name = registry.AUTO
        """That of the one that was chosen, once it is."""

    async def start(self) -> None:
        refusals = []
        for row in registry.allowed(self._settings):
            backend: Backend | None = None
            try:
                backend = self._make(row)
                await backend.start()
                self._first = await backend.create(self._settings.limits)
            except DivingbellError as error:
                refusals.append(f"{row.name}: {error}")
                if backend is not None:
                    await backend.stop()
            except BaseException:
                if backend is not None:
                    await backend.stop()
                raise
            else:
                self.chosen, self.name = backend, row.name
                self.zygote = backend.zygote
                self._progress(f"backend: {row.name}")
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
        if self._first is not None and self._first.limits.sealed_like(limits):
            first, self._first = self._first, None
            first.limits = limits
            return first
        return await self.chosen.create(limits)

    def abandon(self) -> None:
        if self.chosen is not None:
            self.chosen.abandon()

    async def stop(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            await first.stop()
        if self.chosen is not None:
            await self.chosen.stop()
