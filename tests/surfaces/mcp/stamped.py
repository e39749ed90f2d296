"""A program that serves with a border which puts one word in the place of another.

python stamped.py stdio | python stamped.py http PORT
"""

import asyncio
import sys
from typing import Any

from divingbell import Divingbell
from divingbell.border.border import Reader
from divingbell.border.walk import with_texts
from divingbell.principal import Principal
from tests.surfaces.mcp.serving import fixture

BIRD, STAMP = "canary-5b1f", "stamped-5b1f"


class Stamping:
    """What goes out has the stamp for the bird, and what comes in the bird for the stamp."""

    def inward(self, value: Any, principal: Principal) -> Any:
        return replaced(value, STAMP, BIRD)

    def outward(self, value: Any, principal: Principal, reader: Reader = "model") -> Any:
        return replaced(value, BIRD, STAMP) if reader == "model" else value


def replaced(value: Any, old: str, new: str) -> Any:
    """A value with one word in the place of another, wherever it stands in it."""
    return with_texts(value, lambda text: text.replace(old, new))


async def serve(transport: str, port: int) -> None:
    from divingbell.surfaces.mcp import http, stdio

    servers = {"bird": fixture("canary", direct=["*"])}
    async with Divingbell(pool=0, mode="hybrid", servers=servers, border=Stamping()) as bell:
        if transport == "stdio":
            await stdio.serve(bell)
        else:
            listener = http.bound("127.0.0.1", port)
            await http.serve(http.application(bell, None), listener, lambda: None)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
