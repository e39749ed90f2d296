"""Cells that only read: after them every variable is what it was before.

In doubt a cell is none of them. Whatever could run code of somebody else's (an attribute, a method,
an operator of a type that is not Python's own) counts as a change, because it could be one.
"""

import ast
import builtins
import sys
from typing import Any

from divingbell_inside import output

MAX_NODES = 200
MAX_VALUES = 200
"""Of the variables that the cell reads, with all that is in them: looking takes microseconds."""
_PARTS = (
    ast.expr_context,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.Expr,
    ast.Constant,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.Subscript,
    ast.Slice,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Pass,
)
_FUNCTIONS = {
    function.__name__: function
    for function in (print, len, repr, sum, min, max, sorted, abs, round, any, all, str, int, float)
}
_SINGLE = frozenset({int, float, complex, bool, str, bytes, type(None), range})
_CONTAINERS = frozenset({list, tuple, set, frozenset, dict})


def only_reads(tree: ast.Module, names: dict[str, Any]) -> bool:
    """Whether the cell does no more than to compute with plain values, and to print them."""
    waiting: list[ast.AST] = list(tree.body)
    values: list[Any] = []
    for count, node in enumerate(waiting):  # grows as it goes
        if count >= MAX_NODES:
            return False
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) or node.id not in names:
                return False
            values.append(names[node.id])
        elif isinstance(node, ast.Call):
            if not _is_known(node.func, names):
                return False
            waiting += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, _PARTS):
            waiting += ast.iter_child_nodes(node)
        else:
            return False
    return _are_plain(values) and type(sys.stdout) is output.Stdout


def _is_known(function: ast.expr, names: dict[str, Any]) -> bool:
    """Whether that is a function of Python's own, under its own name."""
    if not isinstance(function, ast.Name) or function.id in names:
        return False
    known = _FUNCTIONS.get(function.id)
    return known is not None and builtins.__dict__.get(function.id) is known


def _are_plain(values: list[Any]) -> bool:
    for value in values:  # grows as it goes
        kind = type(value)
        if kind in _CONTAINERS:
            if len(values) + len(value) > MAX_VALUES:
                return False
            values += value
            if kind is dict:
                values += value.values()
        elif kind not in _SINGLE:
            return False
    return True
