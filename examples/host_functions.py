"""Functions of a program, called by code in a session: `python examples/host_functions.py`."""

import asyncio
from dataclasses import dataclass
from datetime import date
from typing import Annotated

from pydantic import Field

from divingbell import Divingbell, ToolContext, ToolFailed


@dataclass
class Order:
    """A row of a database that only this program can reach."""

    number: int
    day: date
    total: float


ORDERS = {
    "Amundsen": [Order(7, date(2026, 3, 4), 120.0), Order(9, date(2026, 5, 6), 40.0)],
    "Earle": [],
}


def find_orders(
    customer: Annotated[str, Field(description="the family name")], since: date = date(2026, 1, 1)
) -> list[Order]:
    """Find the orders of a customer."""
    if customer not in ORDERS:
        raise ToolFailed(f"there is no customer {customer}")  # code is told these very words
    return [order for order in ORDERS[customer] if order.day >= since]


async def tell(text: str, context: ToolContext) -> None:
    """Tell the person who uses this session something."""
    print(f"{context.user} was told: {text}")


SUMS = """
from servers.host import find_orders

orders = find_orders("Amundsen", since="2026-02-01")
print(len(orders), "orders,", sum(order["total"] for order in orders), "in all")
"""


async def main() -> None:
    async with Divingbell(tools=[find_orders]) as bell, bell.session(user="ann") as session:
        result = await session.run(SUMS)
        print(result.text, end="")

        result = await session.run("find_orders('Nobody')")
        if result.error is not None:
            print(f"{result.error.type}: {result.error.message}")
        print([call.name for call in result.calls])

        # For this session alone: code of no other finds it.
        code = "servers.host.tell(f'your refund of {orders[-1][\"total\"]} is on its way')"
        await session.run(code, tools=[tell])


asyncio.run(main())
