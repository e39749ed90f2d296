"""Cells: from source to code objects, and from those to the value of the last line."""

import __future__

import ast
import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine, Iterator
from functools import reduce
from operator import or_
from types import CodeType
from typing import Any

from divingbell_inside import reading
from divingbell_inside.tokens import TokenValues

_COROUTINE = inspect.CO_COROUTINE
_FEATURES = (getattr(__future__, name) for name in __future__.all_feature_names)
_FUTURES: int = reduce(or_, (feature.compiler_flag for feature in _FEATURES))

Transform = Callable[[str], str]
Parts = list[tuple[CodeType, bool]]
"""Code objects in order, each with whether its value is the value of the cell."""


class Evaluator:
    """Runs cells in one namespace, which keeps their variables."""

    def __init__(self, names: dict[str, Any], transform: Transform, tokens: TokenValues) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop of cells that await; None until there was one."""
        self.only_reads = False
        """Whether the cell that was compiled last leaves all variables as they are."""
        self._names = names
        self._transform = transform
        self._tokens = tokens
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def compile(self, source: str, name: str) -> Parts:
        """Return the parts of a cell.

        Raises:
            SyntaxError: see `parse`.
        """
        # Tasks of earlier cells go on in the loop, whatever this one does. One that is not Python
        # does nothing.
        self.only_reads = self.loop is None
        tree = self._tokens.visit(parse(source, name, self._transform))
        self.only_reads = self.only_reads and reading.only_reads(tree, self._names)
        return list(compile_parts(tree, name, self._flags))

    def evaluate(self, parts: Parts) -> Any:
        """Run the parts of a cell; return the value of its last line.

        A cell that awaits runs as one task of our loop. One that does not runs outside of it, so
        that `asyncio.run` works there.
        """
        for code, _ in parts:
            self._flags |= code.co_flags & _FUTURES
        if any(code.co_flags & _COROUTINE for code, _ in parts):
            return self._complete(self._evaluate_awaiting(parts))
        value = None
        for code, is_value in parts:
            answer = eval(code, self._names)
            value = answer if is_value else None
        return value

    async def _evaluate_awaiting(self, parts: Parts) -> Any:
        value = None
        for code, is_value in parts:
            answer = eval(code, self._names)
            if code.co_flags & _COROUTINE:
                answer = await answer
            value = answer if is_value else None
        return value

    def _complete(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a cell that awaits; on an interrupt the cell's task ends, others go on."""
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        loop = self.loop
        asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            raise


def parse(source: str, name: str, transform: Transform) -> ast.Module:
    """Parse Python; where that fails, parse what IPython makes of magics, `!` and `?`.

    Raises:
        SyntaxError: it is neither (also ValueError, RecursionError, MemoryError of the parser).
    """
    tree = _parse(source, name, transform)
    if source.rstrip().endswith(";") and "#" not in source[source.rfind("\n") + 1 :]:
        # A last line that ends in a semicolon has no value to show.
        tree.body.append(ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0))
    return tree


def _parse(source: str, name: str, transform: Transform) -> ast.Module:
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
        flags |= code.co_flags & _FUTURES
        yield code, False
    if last is not None:
        yield compile(ast.Expression(last.value), name, "eval", flags, dont_inherit=True), True
