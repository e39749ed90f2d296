"""The syntax of code as the host reads it: parsed once for all who read a cell. Nothing is run."""

import ast
import functools
import re
import warnings
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

FILE = "<divingbell review>"
_OURS = re.compile(re.escape(FILE))
"""The parser warns about odd escapes in texts. The writer of the code is told inside; on the host
such warnings are ignored. `warnings.catch_warnings` would do that for all threads, and have every
other warning of the program shown again."""
SHORT = 2 << 10
"""Characters of code whose tree is kept for the next one who reads the same: a review, and then the
audit log. Measured: to parse as much takes half a millisecond, more than all else of a review."""
MOST_TREES = 2
"""Cells that are begun side by side; a tree takes 300 bytes for each character."""

BARE = frozenset({
    ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue, ast.Global,
    ast.Nonlocal, *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(),
    *ast.cmpop.__subclasses__(), *ast.boolop.__subclasses__(), str, int, bool, bytes, type(None),
})  # fmt: skip
"""Kinds of nodes and values that have nothing in them. They are half of all."""
_WORDS = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "type_comment", "kind", "conversion",
                    "level", "module", "simple", "is_async", "rest"})  # fmt: skip
"""Parts that are never looked into."""


def parsed(code: str) -> ast.Module:
    """Return the tree of code. Others may have the same one: it must not be changed.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it can't be parsed.
    """
    return _kept(code) if len(code) <= SHORT else _parsed(code)


def _parsed(code: str) -> ast.Module:
    if not warnings.filters or warnings.filters[0][3] != _OURS:
        # In front of those that were set since: one of them may make errors of warnings.
        warnings.filterwarnings("ignore", module=_OURS.pattern)
    return ast.parse(code, FILE)


_kept = functools.lru_cache(MOST_TREES)(_parsed)


def nothing(node: ast.AST) -> tuple[Any, ...]:
    """The parts of a node that has none."""
    return ()


def _kinds(kind: type[ast.AST]) -> Iterator[type[ast.AST]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def _parts_of(kind: type[ast.AST]) -> Callable[[ast.AST], tuple[Any, ...]]:
    """Return what gets the parts of a node of this kind that are looked into."""
    names = [name for name in kind._fields if name not in _WORDS]
    if not names or kind in BARE or kind is ast.Constant:
        return nothing
    if len(names) == 1:
        [name] = names
        return lambda node: (getattr(node, name),)
    return attrgetter(*names)


PARTS = {kind: _parts_of(kind) for kind in _kinds(ast.AST)}
"""What gets the parts of a node that are looked into, by its kind: nodes, lists of nodes, and plain
values of kinds that have nothing in them."""


def nodes(tree: ast.Module) -> list[ast.AST]:
    """Return all nodes of a tree but for those of `BARE`, in the order of `ast.walk`. It takes a
    fifth of the time."""
    found: list[ast.AST] = [tree]
    for node in found:  # which grows meanwhile
        for part in PARTS[type(node)](node):
            if type(part) is list:
                found += [each for each in part if type(each) not in BARE]
            elif type(part) not in BARE:
                found.append(part)
    return found
