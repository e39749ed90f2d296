"""The MCP server of the demo: a shop with 3,000 orders, as a program of its own over stdio."""

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

ORDERS = 3_000
PAGE = 500
MISTYPED = frozenset({412, 1_077, 1_903, 2_646})
"""Orders whose amount lost its decimal point."""
PRODUCTS = {"rope": 12.5, "lamp": 48.0, "helmet": 310.0, "gauge": 89.9}
CUSTOMERS = ("Amundsen", "Barton", "Cousteau", "Dahl", "Earle", "Fleuss", "Giddings")
COUNTRIES = ("Norway", "Peru", "Ukraine")

mcp = MCPServer("shop", instructions="Orders and customers of a shop for divers.")


class Order(BaseModel):
    id: int
    product: str
    units: int
    amount: float
    customer: int


class Customer(BaseModel):
    id: int
    name: str
    country: str


def _order(number: int) -> Order:
    product = tuple(PRODUCTS)[number * 7 % len(PRODUCTS)]
    units = 1 + number * 13 % 5
    amount = round(units * PRODUCTS[product], 2)
    return Order(
        id=number,
        product=product,
        units=units,
        amount=amount * 100 if number in MISTYPED else amount,
        customer=1 + number * 31 % len(CUSTOMERS),
    )


@mcp.tool()
def list_orders(page: int = 1) -> list[Order]:
    """List the orders of this year, 500 on a page. An empty page is behind the last one."""
    if page < 1:
        raise ToolError("pages are counted from 1")
    first = (page - 1) * PAGE + 1
    return [_order(number) for number in range(first, min(first + PAGE, ORDERS + 1))]


@mcp.tool()
def get_customer(id: int) -> Customer:
    """Look a customer up by number."""
    if not 1 <= id <= len(CUSTOMERS):
        raise ToolError(f"there is no customer {id}")
    return Customer(id=id, name=CUSTOMERS[id - 1], country=COUNTRIES[id % len(COUNTRIES)])


if __name__ == "__main__":
    mcp.run()
