"""A function as a tool: its definition, the values of its arguments, and what can't be one."""

import datetime
import enum
import functools
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from divingbell import HostFunction, InvalidInput, ToolContext, ToolFailed
from divingbell.gateway.functions.function import functions_of

CALLER = ToolContext("host.tool", "ann", "talk", 1)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Place:
    city: str
    street: str = ""


class Item(BaseModel):
    sku: str
    amount: int = Field(gt=0)


def order(
    item: Item,
    day: datetime.date,
    size: Size = Size.SMALL,
    *,
    place: Place | None = None,
    kind: Literal["gift", "own"] = "own",
    note: Annotated[str, Field(description="for the parcel", max_length=20)] = "",
) -> dict[str, int]:
    """Place an order.

    It is not paid for yet.

    Args:
        item: what is ordered
        day: when it shall come
        note: these words are not the ones that count

    Returns:
        What it costs.

    Raises:
        KeyError: nobody needs to know.
    """
    return {}


def called(function: Callable[..., Any], given: Mapping[str, Any], **options: Any) -> Any:
    """Call a function as a tool with these arguments."""
    positional, named = HostFunction(function, **options).bound(given, CALLER)
    return function(*positional, **named)


def test_signature_annotations_and_docstring_make_the_definition() -> None:
    definition = HostFunction(order).definition
    assert definition["name"] == "order"
    assert definition["description"] == (
        "Place an order.\n\nIt is not paid for yet.\n\nReturns: What it costs."
    )
    schema = definition["inputSchema"]
    assert schema["required"] == ["item", "day"] and schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["item"] == {"$ref": "#/$defs/Item", "description": "what is ordered"}
    assert properties["day"]["format"] == "date"
    assert properties["size"] == {"$ref": "#/$defs/Size", "default": "small"}
    assert properties["kind"] == {"default": "own", "enum": ["gift", "own"], "type": "string"}
    assert properties["note"]["description"] == "for the parcel"
    assert properties["note"]["maxLength"] == 20
    assert definition["outputSchema"]["type"] == "object"
    assert definition["annotations"] is None


GOOGLE = "Do it.\n\nArgs:\n    count: how often\n"
NUMPY = "Do it.\n\nParameters\n----------\ncount : int\n    how often\n"
SPHINX = "Do it.\n\n:param count: how often\n"


@pytest.mark.parametrize("words", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_parameters_are_described_in_any_of_the_usual_styles(words: str) -> None:
    def repeat(count: int) -> None: ...

    repeat.__doc__ = words
    definition = HostFunction(repeat).definition
    assert definition["description"] == "Do it."
    assert definition["inputSchema"]["properties"]["count"]["description"] == "how often"


def test_a_name_a_description_and_a_hint_take_the_place_of_its_own() -> None:
    made = HostFunction(order, name="buy", description="Buy.", read_only=False)
    assert (made.name, made.definition["description"]) == ("buy", "Buy.")
    assert made.definition["annotations"] == {"readOnlyHint": False}


def test_arguments_become_values_of_the_annotated_types() -> None:
    given = {
        "item": {"sku": "a", "amount": 2},
        "day": "2026-03-04",
        "size": "large",
        "place": {"city": "Oslo"},
    }
    positional, named = HostFunction(order).bound(given, CALLER)
    assert positional == []
    assert named == {
        "item": Item(sku="a", amount=2),
        "day": datetime.date(2026, 3, 4),
        "size": Size.LARGE,
        "place": Place("Oslo"),
    }


def test_what_is_not_given_is_left_to_the_functions_own_default() -> None:
    nothing = object()

    def keep(value: int, kept: Any = nothing) -> Any:
        return kept

    assert called(keep, {"value": 1}) is nothing
    assert "default" not in HostFunction(keep).definition["inputSchema"]["properties"]["kept"]


def test_parameters_by_place_only_and_names_that_models_cant_have() -> None:
    def join(
        first: str, second: str = "b", /, *, schema: str, _id: str = "", json: str = ""
    ) -> str:
        return first + second + schema + _id + json

    assert called(join, {"first": "a", "schema": "c", "json": "d"}) == "abcd"


def test_without_annotations_anything_goes() -> None:
    def first(values, default=None):  # type: ignore[no-untyped-def]
        return values[0] if values else default

    assert HostFunction(first).definition["inputSchema"]["properties"]["values"] == {}
    assert HostFunction(first).definition["outputSchema"] is None
    assert called(first, {"values": [{"a": 1}]}) == {"a": 1}


def test_an_argument_that_does_not_fit_is_told_by_name() -> None:
    with pytest.raises(ToolFailed, match=r"host.tool: day: .*date") as failed:
        called(order, {"item": {"sku": "a", "amount": 1}, "day": "soon"})
    assert failed.value.code == "tool_arguments"
    with pytest.raises(ToolFailed, match=r"item.amount: .*greater than 0"):
        called(order, {"item": {"sku": "a", "amount": 0}, "day": "2026-01-01"})


def test_of_very_many_problems_only_the_number_is_told() -> None:
    def add(numbers: list[int]) -> int:
        return sum(numbers)

    with pytest.raises(ToolFailed, match=r"host.tool: 5,000 values do not fit their annotations"):
        called(add, {"numbers": ["x"] * 5_000})


def test_the_context_is_given_by_the_host_and_is_in_no_schema() -> None:
    def who(context: ToolContext) -> str | None:
        return context.user

    def perhaps(first: int, /, context: ToolContext | None = None) -> str | None:
        return context and context.session

    assert HostFunction(who).definition["inputSchema"]["properties"] == {}
    assert called(who, {}) == "ann"
    assert called(perhaps, {"first": 1}) == "talk"
    with pytest.raises(ToolFailed, match="context: Extra inputs are not permitted"):
        called(who, {"context": {"user": "eve"}})


@pytest.mark.parametrize(
    "annotation, expected",
    [
        (Place, "object"),
        (dict[str, int], "object"),
        (list[int], "wrapped"),
        (None, "wrapped"),
        (Item | None, "wrapped"),
        (Any, None),
        (AsyncIterator[int], None),
    ],
)
def test_what_is_returned_has_a_schema_where_the_annotation_tells(
    annotation: Any, expected: str | None
) -> None:
    def made() -> None: ...

    made.__annotations__["return"] = annotation
    schema = HostFunction(made).definition["outputSchema"]
    if expected is None:
        assert schema is None
    else:
        assert schema["type"] == "object"
        assert schema.get("x-fastmcp-wrap-result", False) is (expected == "wrapped")


# Kinds of callables


class Shop:
    def __init__(self, currency: str) -> None:
        self.currency = currency

    def price(self, sku: str) -> str:
        """Tell the price."""
        return f"{sku}: 5 {self.currency}"

    async def later(self, sku: str) -> str:
        return sku

    def __call__(self, sku: str) -> str:
        return sku

    async def yielding(self) -> AsyncIterator[int]:
        yield 1


class AsyncShop:
    async def __call__(self) -> None: ...


def test_methods_partials_and_objects_that_can_be_called() -> None:
    shop = Shop("EUR")
    method = HostFunction(shop.price)
    assert list(method.definition["inputSchema"]["properties"]) == ["sku"]
    assert method.definition["description"] == "Tell the price."
    assert called(shop.price, {"sku": "a"}) == "a: 5 EUR"
    assert called(shop, {"sku": "a"}, name="shop") == "a"
    assert HostFunction(functools.partial(shop.price)).name == "price"


def test_what_a_partial_function_has_set_can_t_be_changed_by_code() -> None:
    def query(sql: str, tenant: str = "none") -> str:
        return f"{tenant}: {sql}"

    bound = functools.partial(query, tenant="acme")
    assert called(bound, {"sql": "x"}) == "acme: x"
    with pytest.raises(ToolFailed, match="tenant: Extra inputs"):
        called(bound, {"sql": "x", "tenant": "rival"})


def test_a_decorated_function_is_described_by_what_it_decorates() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    @logged
    def double(number: int) -> int:
        """Double it."""
        return 2 * number

    assert HostFunction(double).definition["description"] == "Double it."
    assert called(double, {"number": 4}) == 8


def test_async_functions_are_known_however_they_are_written() -> None:
    shop = Shop("EUR")
    assert HostFunction(shop.later).is_async
    assert HostFunction(functools.partial(shop.later, "a")).is_async
    assert HostFunction(AsyncShop(), name="shop").is_async
    assert not HostFunction(shop.price).is_async


def _any(*values: int) -> None: ...


def _names(**values: int) -> None: ...


def _unknown(value: "NowhereToBeFound") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def _foreign(value: Shop) -> None: ...


def _field(value: int = Field(5)) -> None: ...


@pytest.mark.parametrize(
    "given, words",
    [
        (_any, r"`\*values: int` takes any arguments.*write the parameters out"),
        (_names, r"`\*\*values: int` takes any arguments"),
        (lambda: 1, "has no name that code could call it by.*name="),
        (Shop("EUR"), "has no name that code could call it by"),
        (Shop, "a tool is a function, not <class"),
        (5, "a tool is a function, not 5"),
        (max, "Python knows no signature"),
        (_unknown, "an annotation can't be read.*NowhereToBeFound"),
        (_foreign, "a type that JSON can't be made into.*Shop"),
        (_field, r"the default of 'value' is a Field: write `value: Annotated"),
        (Shop("EUR").yielding, "yields asynchronously: return a list"),
    ],
)
def test_what_can_t_be_a_tool_is_refused_with_what_to_do(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        HostFunction(given)


@pytest.mark.parametrize("name", ["", "a b", "x" * 65, "naïve", "a.b", "1st", 5])
def test_names_that_code_could_not_write_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="has no name that code could call it by"):
        HostFunction(order, name=name)


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="there is a function 'order' already"):
        functions_of([order, HostFunction(uuid.uuid4, name="order")])
