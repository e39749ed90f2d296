"""The guard of a Divingbell: the event loop and the process that it belongs to."""

import asyncio
import os

from divingbell.errors import WrongLoop

_NO_LOOP = (
    "no asyncio event loop runs here, and Divingbell needs one (trio's is none): "
    "call it from a coroutine that asyncio runs, or use divingbell.sync, which needs no loop"
)
_LOOP_ENDED = (
    "the event loop that this Divingbell was started in has ended, and its sessions with it: "
    "do all of it in one asyncio.run(), or use divingbell.sync, which keeps a loop of its own"
)
_OTHER_LOOP = (
    "this Divingbell belongs to another event loop: make one in this loop, hand the call over "
    "with asyncio.run_coroutine_threadsafe(), or use divingbell.sync, which every thread may call"
)
_FORKED = (
    "this process is a fork of the one that the Divingbell belongs to, and can't use it: make one "
    "here, or start processes with multiprocessing.get_context('spawn')"
)


class LoopGuard:
    """Belongs to the loop that it is made in, and lets nobody else pass.

    Elsewhere a call would wait for ever, for what only that loop is told. A fork would even take
    part in what its parent does: both have the same lines to the sessions.
    """

    def __init__(self) -> None:
        """Belong to the loop that runs here.

        Raises:
            WrongLoop: there is none of asyncio's.
        """
        self._loop = _running_loop()
        self._process = os.getpid()

    @property
    def forked(self) -> bool:
        """Whether this process is a fork of the one that it was made in."""
        return os.getpid() != self._process

    def check(self) -> None:
        """Raise WrongLoop in another loop or process. Takes a microsecond or two."""
        if self.forked:
            raise WrongLoop(_FORKED)
        if self._loop.is_closed():
            raise WrongLoop(_LOOP_ENDED)
        if _running_loop() is not self._loop:
            raise WrongLoop(_OTHER_LOOP)


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise WrongLoop(_NO_LOOP) from None
