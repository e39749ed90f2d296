"""Named values: what code says is the value of something with a name, as `last_name="Leeson"`.

Nothing is run. Whoever writes code down, or keeps it, has a learner read this as it reads results.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from divingbell import syntax

MOST_CODE = 1 << 14
"""Characters of code that are read: Python parses these in 10 ms."""
MOST_VALUES = 5_000
MOST_READINGS = 8
"""Times that each character is read, one with another: a text in a list in a list is part of three
values, and a variable in all in which it stands."""
NOWHERE = "code"
"""Stands for the server of what is no argument of a tool."""
_SERVERS = "servers"
_WRITTEN = re.compile(
    # As shells, magics and code that is no Python write it: last_name=x, --last-name x, "a": "b".
    # Each word may be a name, also one that is the value of another.
    r"""(?<!\w)(?=([A-Za-z_][\w-]{1,60})["']?(?:\s?[=:]=?\s?|\s)"""
    r"""(?:"([^"\n]{1,400})"|'([^'\n]{1,400})'|([^\s"',;)}\]]{1,400})))"""
)
_TELLING = frozenset({
    ast.Call, ast.Dict, ast.List, ast.Tuple, ast.Constant, ast.ImportFrom, ast.Assign,
    ast.AnnAssign, ast.NamedExpr, ast.Compare, ast.arguments,
})  # fmt: skip
"""Kinds of nodes that say something of values. They are a third of all."""
Plain = Any
"""What JSON can hold."""


class NamedValue(NamedTuple):
    """A value with its name in a dict, or a text or list in which there may be some."""

    origin: str
    """The tool whose argument it is, as `server.tool`, as far as the code says it."""
    value: Plain


def in_code(code: str) -> list[NamedValue]:
    """Return the values of code that stand beside a name, and its texts; the start of a long one.

    What is put together when the code runs is not there, nor is what stands at a place of its own:
    `save("Leeson")`.
    """
    code = code[:MOST_CODE]
    try:
        tree = syntax.parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [
            NamedValue(NOWHERE, {name: next(filter(None, each), "")})
            for name, *each in _WRITTEN.findall(code)[:MOST_VALUES]
        ]
    reading = _Reading(tree, MOST_READINGS * len(code))
    found: list[NamedValue] = []
    for each in reading.found():
        found.append(each)
        if len(found) >= MOST_VALUES:
            break
    return found


class _Reading:
    """A piece of Python."""

    def __init__(self, tree: ast.Module, most: int) -> None:
        self._left = most
        self._nodes = [node for node in syntax.nodes(tree) if type(node) in _TELLING]
        self._imported: dict[str, str] = {}
        """What names that were imported from a server stand for: `find` for `crm.find`."""
        self._assigned: dict[str, list[ast.Constant]] = {}
        for node in self._nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                self._note_import(node.module, node.names)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self._assigned.setdefault(target.id, []).append(node.value)

    def _note_import(self, module: str, names: list[ast.alias]) -> None:
        above, _, server = module.rpartition(".")
        for each in names:
            said = each.asname or each.name
            if above == _SERVERS:
                self._imported[said] = f"{server}.{each.name}"
            elif module == _SERVERS:
                self._imported[said] = each.name

    def found(self) -> Iterator[NamedValue]:
        for node in self._nodes:
            if isinstance(node, ast.Call):
                named = {each.arg: self._plain(each.value) for each in node.keywords if each.arg}
                if named:
                    yield NamedValue(self._tool(node.func), named)
            elif isinstance(node, ast.Dict | ast.List | ast.Tuple):
                yield NamedValue(NOWHERE, self._plain(node))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield NamedValue(NOWHERE, node.value)
            else:
                for name, value in _pairs(node):
                    yield NamedValue(NOWHERE, {name: self._plain(value)})

    def _tool(self, function: ast.expr) -> str:
        """The tool that a function is, where it can be one."""
        if isinstance(function, ast.Name):
            return self._imported.get(function.id, NOWHERE)
        if isinstance(function, ast.Attribute) and (server := _name_of(function.value)):
            return f"{self._imported.get(server, server)}.{function.attr}"
        return NOWHERE

    def _plain(self, node: ast.expr | None) -> Plain:
        self._left -= 1
        if isinstance(node, ast.Constant):
            self._left -= len(node.value) if isinstance(node.value, str) else 0
            return node.value if isinstance(node.value, str | int | float) else None
        if self._left <= 0:
            return None  # what stands beside a name itself is read all the same
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [self._plain(each) for each in node.elts]
        if isinstance(node, ast.Dict):
            keys = (key.value if isinstance(key, ast.Constant) else None for key in node.keys)
            return dict(zip(map(str, keys), map(self._plain, node.values), strict=True))
        if isinstance(node, ast.Name):
            return [self._plain(each) for each in self._assigned.get(node.id, ())]
        return None


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield names, each with what is assigned to it, compared with it, or stands for it."""
    if isinstance(node, ast.Assign):
        yield from ((_name_of(target), node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield _name_of(node.target), node.value
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for one, other in itertools.pairwise(sides):
            yield _name_of(one), other
            yield _name_of(other), one
    elif isinstance(node, ast.arguments):
        places = [*node.posonlyargs, *node.args]
        defaults = zip(reversed(places), reversed(node.defaults), strict=False)
        yield from ((place.arg, value) for place, value in defaults)
        by_name = zip(node.kwonlyargs, node.kw_defaults, strict=True)
        yield from ((each.arg, value) for each, value in by_name if value is not None)


def _name_of(node: ast.expr) -> str:
    """The name of a variable, an attribute or a field; none where it has none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ""
