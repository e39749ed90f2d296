"""Cancelling: what has begun inside is brought to its end before its caller is let go."""

import asyncio
import contextlib
from typing import Any


async def see_through(concluding: asyncio.Task[Any]) -> None:
    """See what a cancelled call began to its end, so that the session stays usable."""
    while not concluding.done():
        # Cancelled again and again, we still may not leave a cell behind that runs on.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([concluding])
    concluding.exception()  # whoever is gone is not told; the next run meets it again
