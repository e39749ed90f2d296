"""The shop of tau-bench (retail): its data, its test tasks, and its tools as an MCP server.

Users, orders and products are those of the benchmark, and the tools have its names, words and
schemas. What a tool does is written here after its description and the shop's policy. A call that
the shop refuses is an error of the tool.
"""

import ast
import functools
import gzip
import json
import operator
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tool_lists import DATA, VARIABLE

Record = dict[str, Any]
NAME = "retail"
FILES = {
    "tools": "tools",
    "tasks": "tasks_test",
    "users": "users",
    "orders": "orders",
    "products": "products",
}
WRITES = frozenset(
    {
        "cancel_pending_order",
        "exchange_delivered_order_items",
        "modify_pending_order_address",
        "modify_pending_order_items",
        "modify_pending_order_payment",
        "modify_user_address",
        "return_delivered_order_items",
    }
)
REASONS = ("no longer needed", "ordered by mistake")
PENDING, DELIVERED, MODIFIED = "pending", "delivered", "pending (items modified)"
_SIGNS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@functools.cache
def data() -> Mapping[str, Any]:
    """Return tools, tasks, users, orders, products and the policy. Shared: don't change it.

    A folder `bench/tau-retail` in DIVINGBELL_TEST_DATA, with the files of the benchmark, goes
    before what is packed in tests/data: the users of the test tasks, their orders, all products.
    """
    folder = Path(os.environ.get(VARIABLE, ""), "bench", "tau-retail")
    if not (os.environ.get(VARIABLE) and folder.is_dir()):
        packed = (DATA / "tau_retail.json.gz").read_bytes()
        found: dict[str, Any] = json.loads(gzip.decompress(packed))
        return found
    read = {key: json.loads((folder / f"{name}.json").read_bytes()) for key, name in FILES.items()}
    return read | {"policy": (folder / "wiki.md").read_text("utf-8")}


class Refused(Exception):
    """Raised for a call that the shop refuses; the text says why."""


class Shop:
    """The shop with its data, which calls of tools read and change."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Record]] = []
        """What was called since the last reset."""
        self.reset()

    def reset(self) -> None:
        """Put everything back to how it was in the beginning."""
        self.calls.clear()
        # Products are never changed, and they are the largest part.
        self.users: dict[str, Record]
        self.orders: dict[str, Record]
        self.users, self.orders = pickle.loads(_beginning())
        self.products: Mapping[str, Record] = data()["products"]

    def state(self) -> str:
        """Return all that calls have changed, as text that can be compared."""
        changed = [_changed(self.users, data()["users"]), _changed(self.orders, data()["orders"])]
        return json.dumps(changed, sort_keys=True)

    def call(self, name: str, arguments: Record) -> Any:
        """Do what a tool does, and return its result.

        Raises:
            Refused: the shop does not do that.
        """
        self.calls.append((name, arguments))
        tool: Callable[..., Any] = getattr(self, name)
        return tool(**arguments)

    # Reading

    def find_user_id_by_email(self, email: str) -> str:
        return self._user_where(lambda user: user["email"].lower() == email.lower())

    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:
        wanted = (first_name.lower(), last_name.lower(), zip)

        def is_wanted(user: Record) -> bool:
            name = user["name"]
            first, last = name["first_name"].lower(), name["last_name"].lower()
            return (first, last, user["address"]["zip"]) == wanted

        return self._user_where(is_wanted)

    def get_user_details(self, user_id: str) -> Record:
        return _found(self.users, user_id, "user")

    def get_order_details(self, order_id: str) -> Record:
        return _found(self.orders, order_id, "order")

    def get_product_details(self, product_id: str) -> Record:
        return _found(self.products, product_id, "product")

    def list_all_product_types(self) -> Record:
        return {each["name"]: each["product_id"] for each in self.products.values()}

    def calculate(self, expression: str) -> str:
        return f"{round(_value(ast.parse(expression, mode='eval').body), 2)}"

    def think(self, thought: str) -> str:
        return "thought"

    def transfer_to_human_agents(self, summary: str) -> str:
        return "Transfer successful"

    def _user_where(self, condition: Callable[[Record], bool]) -> str:
        found = next((key for key, user in self.users.items() if condition(user)), None)
        if found is None:
            raise Refused("user not found")
        return found

    # Writing

    def cancel_pending_order(self, order_id: str, reason: str) -> Record:
        order = self._order(order_id, PENDING)
        if reason not in REASONS:
            raise Refused("invalid reason")
        for paid in list(order["payment_history"]):
            self._pay(order, -paid["amount"], paid["payment_method_id"])
        order |= {"status": "cancelled", "cancel_reason": reason}
        return order

    def return_delivered_order_items(
        self, order_id: str, item_ids: list[str], payment_method_id: str
    ) -> Record:
        order = self._order(order_id, DELIVERED)
        method = self._method(order, payment_method_id)
        paid_with = order["payment_history"][0]["payment_method_id"]
        if method["source"] != "gift_card" and payment_method_id != paid_with:
            raise Refused("the refund must go to the original payment method or to a gift card")
        _items(order, item_ids)
        order |= {
            "status": "return requested",
            "return_items": sorted(item_ids),
            "return_payment_method_id": payment_method_id,
        }
        return order

    def exchange_delivered_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Record:
        order = self._order(order_id, DELIVERED)
        pairs = self._pairs(order, item_ids, new_item_ids)
        difference = self._difference(order, pairs, payment_method_id)
        order |= {
            "status": "exchange requested",
            "exchange_items": sorted(item_ids),
            "exchange_new_items": sorted(new_item_ids),
            "exchange_payment_method_id": payment_method_id,
            "exchange_price_difference": difference,
        }
        return order

    def modify_pending_order_items(
        self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> Record:
        order = self._order(order_id, PENDING)
        pairs = self._pairs(order, item_ids, new_item_ids)
        self._pay(order, self._difference(order, pairs, payment_method_id), payment_method_id)
        for item, variant in pairs:
            item |= {key: variant[key] for key in ("item_id", "price", "options")}
        order["status"] = MODIFIED
        return order

    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> Record:
        order = self._order(order_id, PENDING)
        paid = order["payment_history"][0]
        method = self._method(order, payment_method_id)
        if paid["payment_method_id"] == payment_method_id:
            raise Refused("the new payment method must be another one")
        _covers(method, paid["amount"])
        self._pay(order, paid["amount"], payment_method_id)
        self._pay(order, -paid["amount"], paid["payment_method_id"])
        return order

    def modify_pending_order_address(self, order_id: str, **address: str) -> Record:
        order = self._order(order_id, PENDING)
        order["address"] = address
        return order

    def modify_user_address(self, user_id: str, **address: str) -> Record:
        user = self.get_user_details(user_id)
        user["address"] = address
        return user

    def _order(self, order_id: str, status: str) -> Record:
        order = self.get_order_details(order_id)
        if order["status"] != status:
            raise Refused(f"the order is {order['status']}, not {status}")
        return order

    def _method(self, order: Record, payment_method_id: str) -> Record:
        methods = self.users[order["user_id"]]["payment_methods"]
        return _found(methods, payment_method_id, "payment method")

    def _pairs(
        self, order: Record, item_ids: Sequence[str], new_item_ids: Sequence[str]
    ) -> list[tuple[Record, Record]]:
        """Return items of the order, each with the variant that takes its place."""
        if len(item_ids) != len(new_item_ids):
            raise Refused("there must be as many new items as old ones")
        pairs = []
        for item, new in zip(_items(order, item_ids), new_item_ids, strict=True):
            variant = self.products[item["product_id"]]["variants"].get(new)
            if variant is None or not variant["available"]:
                raise Refused(f"the new item {new} is not available")
            pairs.append((item, variant))
        return pairs

    def _difference(
        self, order: Record, pairs: Sequence[tuple[Record, Record]], payment_method_id: str
    ) -> float:
        difference = round(sum(new["price"] - old["price"] for old, new in pairs), 2)
        _covers(self._method(order, payment_method_id), difference)
        return difference

    def _pay(self, order: Record, amount: float, payment_method_id: str) -> None:
        """Write down a payment, or a refund where the amount is below zero."""
        method = self._method(order, payment_method_id)
        if method["source"] == "gift_card":
            method["balance"] = round(method["balance"] - amount, 2)
        kind = "payment" if amount > 0 else "refund"
        entry = {"transaction_type": kind, "amount": abs(amount)}
        order["payment_history"].append(entry | {"payment_method_id": payment_method_id})


@functools.cache
def _beginning() -> bytes:
    """Users and orders, packed: to unpack them takes a fifth of the time of a deep copy."""
    return pickle.dumps((data()["users"], data()["orders"]))


def _changed(now: Mapping[str, Record], before: Mapping[str, Record]) -> Record:
    """Return the records that are not as they were; None for one that is gone."""
    return {key: now.get(key) for key in {*now, *before} if now.get(key) != before.get(key)}


def _found(records: Mapping[str, Record], key: str, what: str) -> Record:
    if key not in records:
        raise Refused(f"{what} not found")
    return records[key]


def _items(order: Record, item_ids: Sequence[str]) -> list[Record]:
    """Return the items of an order that are meant, each once."""
    left = list(order["items"])
    missing = Counter(item_ids) - Counter(item["item_id"] for item in left)
    if missing:
        raise Refused(f"item not found: {', '.join(missing)}")
    found = []
    for item_id in item_ids:
        place = next(place for place, item in enumerate(left) if item["item_id"] == item_id)
        found.append(left.pop(place))
    return found


def _covers(method: Record, amount: float) -> None:
    if method["source"] == "gift_card" and method["balance"] < amount:
        raise Refused("the gift card's balance does not cover it")


def _value(node: ast.expr) -> float:
    """Return the value of an expression of numbers, signs and brackets."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return _SIGNS[type(node.op)](_value(node.left), _value(node.right))
    raise Refused("the expression can't be calculated")


def server(shop: Shop, names: Collection[str] | None = None) -> Server[Any]:
    """Return an MCP server with the tools of the shop, or with some of them."""
    tools = [
        types.Tool(
            name=each["function"]["name"],
            description=each["function"]["description"],
            input_schema=each["function"]["parameters"],
        )
        for each in data()["tools"]
        if names is None or each["function"]["name"] in names
    ]

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            value = shop.call(params.name, params.arguments or {})
        except Refused as error:
            content = [types.TextContent(text=f"Error: {error}")]
            return types.CallToolResult(content=list(content), is_error=True)
        if isinstance(value, str):
            return types.CallToolResult(content=[types.TextContent(text=value)])
        text = types.TextContent(text=json.dumps(value))
        return types.CallToolResult(content=[text], structured_content=value)

    return Server(NAME, version="1", on_list_tools=list_tools, on_call_tool=call_tool)
