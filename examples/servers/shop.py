"""A small MCP server to try things with: a shop with orders. `python examples/servers/shop.py`."""

from typing import Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

mcp = MCPServer("shop", instructions="Orders of a small shop.")


class Order(BaseModel):
    id: int
    customer: str
    total: float
    state: Literal["open", "sent", "returned"]


def _order(number: int) -> Order:
    state: Literal["open", "sent", "returned"] = "returned" if number % 97 == 0 else "sent"
    customers = ("Ada", "Grace", "Linus", "Margaret")
    total = round(20 + number * 7.3 % 400, 2)
    return Order(id=number, customer=customers[number % 4], total=total, state=state)


ORDERS = {number: _order(number) for number in range(1, 2001)}


@mcp.tool()
def list_orders(state: Literal["open", "sent", "returned"] | None = None) -> list[Order]:
    """List the orders, all of them or those in one state."""
    return [order for order in ORDERS.values() if state is None or order.state == state]


@mcp.tool()
def get_order(id: int) -> Order:
    """Look an order up by its number."""
    if id not in ORDERS:
        raise ToolError(f"there is no order {id}")
    return ORDERS[id]


@mcp.tool()
def refund(id: int, amount: float) -> str:
    """Pay money back for an order."""
    return f"refunded {amount:.2f} for order {get_order(id).id}"


@mcp.resource("shop://hours")
def hours() -> str:
    """When the shop is open."""
    return "Monday to Friday, 9 to 17"


if __name__ == "__main__":
    mcp.run()
