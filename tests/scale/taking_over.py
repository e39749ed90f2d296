"""The tests of the library, taken over by modules whose sessions are on nodes."""

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

INNER = ("_handle", "monkeypatch", "Cell(", "capsys", "Divingbell(", "galley(", "subprocess")
"""What a test has in it that looks into this process, or makes a Divingbell of its own."""


def taken_from(module: ModuleType, but: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the tests of a module that need nothing but a session, by name, and its fixtures."""
    found = dict(_found(module, but))
    # One that is listed and gives nothing would look as if it were kept on nodes too.
    assert any(name.startswith("test_") for name in found), f"{module.__name__} gives no test"
    return found


def _found(module: ModuleType, but: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, each in vars(module).items():
        is_fixture = type(each).__name__ == "FixtureFunctionDefinition"
        if is_fixture and name not in ("bell", "session", "kitchen"):
            yield name, each
        elif name.startswith("test_") and inspect.iscoroutinefunction(each) and name not in but:
            names = inspect.signature(each).parameters
            source = inspect.getsource(each)
            takes = {"session", "bell", "kitchen"} & names.keys()
            if takes and not any(word in source for word in INNER):
                yield f"{name}__{module.__name__.rpartition('.')[2]}", each
