"""A server whose answers are not what the protocol says; the argument chooses the lie."""

import sys

import rough

LIES = {
    "types": {"content": "not a list"},
    "list": [1, 2, 3],
    "deep": {"content": [], "structuredContent": {"a": [[[[{"b": None}]]]]}},
}
LIST = {"tools": [{"name": 7}]} if "tools" in sys.argv else {"tools": [rough.TOOL]}

rough.serve({"tools/list": lambda _: LIST, "tools/call": lambda p: LIES[p["arguments"]["lie"]]})
