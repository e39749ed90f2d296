"""The description of the API, and the page about it."""

import re
from pathlib import Path

from divingbell.surfaces.http import openapi
from divingbell.surfaces.http.application import OPERATIONS

PAGE = Path(__file__).parents[3] / "docs/api.md"


def test_every_operation_is_described_once() -> None:
    told = openapi.description(OPERATIONS)
    found = [each["operationId"] for path in told["paths"].values() for each in path.values()]
    assert len(found) == len(set(found)) == len(OPERATIONS)
    assert told["openapi"] == "3.1.0" and "Problem" in told["components"]["schemas"]


def test_what_is_referred_to_is_there() -> None:
    told = openapi.description(OPERATIONS)
    referred = set(re.findall(r"#/components/schemas/(\w+)", str(told)))
    assert referred <= set(told["components"]["schemas"])


def test_the_page_has_every_operation_with_its_scope() -> None:
    rows = re.findall(r"^\| `([A-Z]+ /\S+)` \| `(\w+)` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    path = {f"{each.method} {each.path.replace(':path}', '}')}": each.need for each in OPERATIONS}
    assert dict(rows) == path
