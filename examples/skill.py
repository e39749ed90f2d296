"""A skill is saved in one session, and used in another."""

import asyncio
import os
import tempfile

from divingbell import Divingbell

ORDERS = [("Lima Ltd", 120.0), ("Oslo AS", 310.0), ("Rome SpA", 85.0)]
SAVE = '''
from servers.host import list_orders

def top_customers(limit=3):
    """The customers with the largest orders.

    >>> top_customers(2)
    """
    orders = sorted(list_orders(), key=lambda order: -order["total"])
    return [order["customer"] for order in orders[:limit]]

print(top_customers(2))
save_skill("top_customers", top_customers, "Finds the customers with the largest orders")
'''


def list_orders() -> list[dict[str, object]]:
    """All orders that were paid."""
    return [{"customer": customer, "total": total} for customer, total in ORDERS]


async def main() -> None:
    async with Divingbell(skills="on", tools=[list_orders]) as bell:
        async with bell.session(user="ann") as session:
            print((await session.run(SAVE)).text.splitlines()[0])
        async with bell.session(user="ann") as later:
            found = await later.run("[skill['name'] for skill in search_skills('customers')]")
            print(found.value)
            used = await later.run("from skills import top_customers\ntop_customers(1)")
            print(used.value)
        async with bell.session(user="ben") as other:
            print((await other.run("search_skills()")).value)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder  # leave it out to keep the skills
        asyncio.run(main())
