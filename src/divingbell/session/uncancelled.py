"""Work that is seen to its end although whoever waits for it is cancelled."""

import asyncio
import contextlib
from typing import Any


async def see_through(work: asyncio.Task[Any]) -> None:
    """See what a cancelled call began to its end, so that the session stays usable."""
    while not work.done():
        # Cancelled again and again, we still may not leave anything behind that runs on.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
    work.exception()  # whoever is gone is not told; the next run meets it again
