"""The tests of the library, taken over by modules whose sessions are on nodes."""

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

INNER = ("_handle", "monkeypatch", "Cell(", "capsys", "Divingbell(", "galley(", "subprocess")
"""What a test has in it that looks into this process, or makes a Divingbell of its own."""
GIVEN = ("bell", "session", "kitchen")


def taken_from(
    module: ModuleType, but: tuple[str, ...] = (), given: tuple[str, ...] = GIVEN
) -> dict[str, Any]:
    """Return the tests of a module that need nothing but what is given, by name, and its
    fixtures."""
    found = dict(_found(module, but, set(given)))
    # One that is listed and gives nothing would look as if it were kept on nodes too.
    assert any(name.startswith("test_") for name in found), f"{module.__name__} gives no test"
    return found


def _found(module: ModuleType, but: tuple[str, ...], given: set[str]) -> Iterator[tuple[str, Any]]:
    for name, each in vars(module).items():
        is_fixture = type(each).__name__ == "FixtureFunctionDefinition"
        if is_fixture and name not in given:
            yield name, each
        elif name.startswith("test_") and inspect.isfunction(each) and name not in but:
            takes = given & inspect.signature(each).parameters.keys()
            source = inspect.getsource(each)
            if takes and not any(word in source for word in INNER):
                yield f"{name}__{module.__name__.rpartition('.')[2]}", each
