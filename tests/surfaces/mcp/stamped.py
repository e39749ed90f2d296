"""A program that serves with a border which puts one word in the place of another.

python stamped.py stdio | python stamped.py http PORT
"""

import asyncio
import sys
from typing import Any

from divingbell import Divingbell
from divingbell.border.border import Border, OpenBorder, Passage, Reader, Shown
from divingbell.border.walk import with_texts
from divingbell.principal import Principal
from tests.surfaces.mcp.serving import fixture

BIRD, STAMP = "canary-5b1f", "[BIRD_482715]"


class Whole:
    """A way out for events that come whole."""

    def __init__(self, border: Border, principal: Principal) -> None:
        self._border, self._principal = border, principal

    async def event(self, event: Shown) -> list[Shown]:
        return [await self._border.outward(event, self._principal)]

    async def end(self) -> list[Any]:
        return []


class Stamping(OpenBorder):
    """What goes out has the stamp for the bird, and what comes in the bird for the stamp."""

    async def inward(
        self, value: Any, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Any:
        return replaced(value, STAMP, BIRD)

    async def values_in(self, code: str, principal: Principal) -> dict[str, str]:
        return {STAMP: BIRD} if STAMP in code else {}

    async def outward(
        self, value: Any, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Any:
        return replaced(value, BIRD, STAMP) if reader == "model" else value

    def text(self, text: str, principal: Principal, *, goes_on: bool = False) -> str:
        return text.replace(BIRD, STAMP)

    def passage(self, principal: Principal, charge: Any) -> Passage:
        return Whole(self, principal)


def replaced(value: Any, old: str, new: str) -> Any:
    """A value with one word in the place of another, wherever it stands in it."""
    return with_texts(value, lambda text: text.replace(old, new))


async def serve(transport: str, port: int) -> None:
    from divingbell.surfaces.http import listening
    from divingbell.surfaces.http.application import application
    from divingbell.surfaces.mcp import stdio

    servers = {"bird": fixture("canary", direct=["*"])}
    async with Divingbell(pool=0, mode="hybrid", servers=servers, border=Stamping()) as bell:
        if transport == "stdio":
            await stdio.serve(bell)
        else:
            listener = listening.bound("127.0.0.1", port)
            await listening.serve(application(bell, None), listener, lambda: None)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
