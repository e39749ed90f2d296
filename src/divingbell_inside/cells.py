"""From the source of a cell to code objects: the body, then the value of the last line."""

import __future__

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from types import CodeType

COROUTINE = inspect.CO_COROUTINE
_FEATURES = (getattr(__future__, name) for name in __future__.all_feature_names)
FUTURES: int = reduce(or_, (feature.compiler_flag for feature in _FEATURES))


def parse(source: str, name: str, transform: Callable[[str], str]) -> ast.Module:
    """Parse Python; where that fails, parse what IPython makes of magics, `!` and `?`.

    Raises:
        SyntaxError: it is neither (also ValueError, RecursionError, MemoryError of the parser).
    """
    tree = _parse(source, name, transform)
    if source.rstrip().endswith(";") and "#" not in source[source.rfind("\n") + 1 :]:
        # A last line that ends in a semicolon has no value to show.
        tree.body.append(ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0))
    return tree


def _parse(source: str, name: str, transform: Callable[[str], str]) -> ast.Module:
    try:
        return ast.parse(source, name)
    except SyntaxError as first:
        if "\0" in source:
            raise
        transformed = transform(source)
        if transformed.strip() == source.strip():
            raise
        try:
            return ast.parse(transformed, name)
        except SyntaxError:
            raise first from None


def compile_parts(tree: ast.Module, name: str, flags: int) -> Iterator[tuple[CodeType, bool]]:
    """Yield code objects in order, each with whether its value is the value of the cell."""
    body = tree.body
    last = body[-1] if body else None
    if isinstance(last, ast.Expr):
        tree.body = body[:-1]
    else:
        last = None
    if tree.body:
        code = compile(tree, name, "exec", flags, dont_inherit=True)
        # A future statement in the body holds for the last line too.
        flags |= code.co_flags & FUTURES
        yield code, False
    if last is not None:
        yield compile(ast.Expression(last.value), name, "eval", flags, dont_inherit=True), True
