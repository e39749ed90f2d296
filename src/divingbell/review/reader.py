"""The reader: one walk over the tree of a cell, which tells what stands out.

It knows no settings. The walk keeps a stack of its own, so that no nesting is too deep for it.
"""

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from divingbell.review import vocabulary
from divingbell.review.estimate import ARRAYS, LOOPS_A_SECOND, Estimate
from divingbell.review.names import Names, dotted, root_of
from divingbell.review.sights import Sights, shown
from divingbell.review.uses import Uses

MAX_TARGETS = 100
"""Names that one assignment binds."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_ENDS = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)
_ENTERED = frozenset({
    ast.BinOp, ast.Import, ast.ImportFrom, ast.Assign, ast.Try, ast.TryStar, ast.arg, *_LOOPS,
    *_COMPREHENSIONS, *_FUNCTIONS,
})  # fmt: skip
"""Kinds of nodes that are looked at as they are met."""
_BARE = frozenset({
    ast.Constant, ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue, ast.Global,
    ast.Nonlocal, *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(),
    *ast.cmpop.__subclasses__(), *ast.boolop.__subclasses__(), str, int, bool, bytes, type(None),
})  # fmt: skip
"""Kinds of nodes and values that have nothing in them. They are half of all."""
_WORDS = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "type_comment", "kind", "conversion",
                    "level", "module", "simple", "is_async", "rest"})  # fmt: skip
"""Parts that are never looked into."""


def _kinds(kind: type[ast.AST]) -> Iterator[type[ast.AST]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


_PARTS = {
    kind: tuple(name for name in kind._fields if name not in _WORDS) for kind in _kinds(ast.AST)
}


class Bounds(NamedTuple):
    """What a cell has: more than that is a finding."""

    seconds: float
    memory: float


class _Place(NamedTuple):
    """Where a node stands."""

    rounds: float = 1.0
    """How often it is passed, by the loops around it."""
    in_loop: bool = False
    endless: bool = False
    """Within a loop that nothing ends."""
    in_function: bool = False
    caught: bool = False
    """Within a `try`: what it raises may be how it ends."""


_TOP = _Place()


class Reader:
    """Looks at one tree."""

    def __init__(self, bounds: Bounds, sights: Sights) -> None:
        self._bounds = bounds
        self._sights = sights
        self._names = Names()
        self._uses = Uses(self._names, sights)
        self._estimate = Estimate()
        self._leaving: dict[_Loop, bool] = {}
        self._kept: list[tuple[ast.expr, _Place]] = []
        """Calls and dotted names, for when all imports are known."""

    def read(self, tree: ast.Module) -> None:
        """Look at all of it."""
        self._walk(tree)
        for node, place in self._kept:
            if isinstance(node, ast.Call):
                self._look_at_call(node, place)
            else:
                self._uses.look_at_name(node)

    def _look_at_call(self, node: ast.Call, place: _Place) -> None:
        called = dotted(node.func)
        name = self._names.resolved(called) or called
        self._uses.look_at_call(node, name, in_loop=place.in_loop, endless=place.endless)
        if name in ARRAYS:
            self._look_at_size(self._estimate.array(node, name), node)

    # The walk

    def _walk(self, tree: ast.Module) -> None:
        # Written out, and with few calls: it is two thirds of the time that a review takes.
        waiting: list[tuple[ast.AST, _Place]] = [(tree, _TOP)]
        keep, evaluators, enter = self._kept.append, vocabulary.EVALUATORS, self._enter
        while waiting:
            node, place = waiting.pop()
            kind = type(node)
            if isinstance(node, ast.Attribute):
                keep((node, place))
                node = root_of(node)
                kind = type(node)
            if isinstance(node, ast.Name):
                if node.id in evaluators:
                    keep((node, place))
                continue
            if kind is ast.Call:
                keep((node, place))  # type: ignore[arg-type]
            elif kind in _ENTERED:
                place = enter(node, place)
            for name in _PARTS.get(kind, ()):
                found: Any = getattr(node, name, None)
                if type(found) is list:
                    for each in reversed(found):
                        if type(each) not in _BARE:
                            waiting.append((each, place))
                elif type(found) not in _BARE:
                    waiting.append((found, place))

    def _enter(self, node: ast.AST, place: _Place) -> _Place:
        """Look at a node, and return the place of what is in it."""
        if isinstance(node, ast.BinOp):
            self._look_at_size(self._estimate.size(node), node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._look_at_import(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, _LOOPS):
            return self._enter_loop(node, place)
        elif isinstance(node, ast.Try | ast.TryStar):
            return place._replace(caught=place.caught or bool(node.handlers))
        elif isinstance(node, _COMPREHENSIONS):
            return self._enter_comprehension(node, place)
        elif isinstance(node, _FUNCTIONS):
            self._look_at_recursion(node)
            return _Place(in_function=True)
        elif isinstance(node, ast.arg):
            self._names.bind(node.arg)
        return place

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._names.bind(target.id, value)
            self._estimate.bind(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            for each in target.elts[:MAX_TARGETS]:
                if isinstance(each, ast.Name):
                    self._bind(each, None)

    # Loops

    def _enter_loop(self, node: _Loop, place: _Place) -> _Place:
        ends = self._has_end(node)
        if isinstance(node, ast.While):
            endless, rounds = _is_always(node.test) and not ends, 1.0
        else:
            self._bind(node.target, None)
            endless = not ends and self._counts_for_ever(node.iter)
            rounds = 1.0 if ends else self._estimate.rounds(node.iter)
        # In a function it may well be what a thread does.
        if endless and not place.in_function and not place.caught:
            self._sights.see("loop", node.lineno, "loops without an end")
        inner = place._replace(
            in_loop=True, endless=place.endless or endless, rounds=place.rounds * rounds
        )
        self._look_at_rounds(inner, place, node.lineno)
        return inner

    def _has_end(self, loop: _Loop) -> bool:
        """Whether something in a loop may end it, other than an exception of what it calls."""
        return self._leaves(loop) or any(isinstance(node, ast.Break) for node in _own(loop))

    def _leaves(self, loop: _Loop) -> bool:
        """Whether something in a loop, or in one within it, ends more than that loop."""
        if loop not in self._leaving:
            self._leaving[loop] = any(
                self._leaves(node) if isinstance(node, _LOOPS) else _is_way_out(node)
                for node in _own(loop)
            )
        return self._leaving[loop]

    def _counts_for_ever(self, iterated: ast.expr) -> bool:
        if not isinstance(iterated, ast.Call):
            return False
        name = self._names.resolved(dotted(iterated.func))
        is_repeat = name == "itertools.repeat" and len(iterated.args) == 1 and not iterated.keywords
        return name in ("itertools.count", "itertools.cycle") or is_repeat

    def _enter_comprehension(self, node: ast.AST, place: _Place) -> _Place:
        rounds = place.rounds
        for generator in node.generators:  # type: ignore[attr-defined]
            rounds *= self._estimate.rounds(generator.iter)
        inner = place._replace(in_loop=True, rounds=rounds)
        if not isinstance(node, ast.GeneratorExp):
            # `any`, `next` and `islice` stop a generator where they like.
            self._look_at_rounds(inner, place, node.lineno)  # type: ignore[attr-defined]
        return inner

    def _look_at_rounds(self, inner: _Place, outer: _Place, line: int) -> None:
        most = self._bounds.seconds * LOOPS_A_SECOND
        if inner.rounds > most >= outer.rounds:
            number = f"about {inner.rounds:,.0f}" if inner.rounds < 1e15 else "more than 10**15"
            seconds = f"{self._bounds.seconds:g} s"
            self._sights.see("loop", line, f"loops {number} times, and the cell has {seconds}")

    def _look_at_recursion(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            self._names.bind(node.name)
            if _calls_itself(node):
                what = f"defines {shown(node.name)}, which calls itself for ever"
                self._sights.see("loop", node.lineno, what, node.name)

    def _look_at_size(self, size: float, node: ast.expr) -> None:
        amount = f"about {size / 1e6:,.0f} MB" if size < 1e15 else "more than 10**15 bytes"
        if size and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift):
            what = f"works out a whole number of {amount}, which takes minutes"
            self._sights.see("size", node.lineno, what)
        elif size > self._bounds.memory:
            memory = f"{self._bounds.memory / (1 << 20):,.0f} MB"
            what = f"makes something of {amount}, and the session has {memory}"
            self._sights.see("size", node.lineno, what)

    def _look_at_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                self._names.alias(each.asname or top, each.name if each.asname else top)
                if top != vocabulary.SERVERS:
                    self._uses.look_at_import(each.name, node.lineno)
        elif node.module and not node.level:
            for each in node.names:
                self._names.alias(each.asname or each.name, f"{node.module}.{each.name}")
                if node.module.partition(".")[0] == vocabulary.SERVERS:
                    self._uses.take_tool(f"{node.module}.{each.name}", node.lineno)
                else:
                    self._uses.look_at_imported_name(node.module, each.name, node.lineno)


def _is_always(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _own(loop: _Loop) -> Iterator[ast.AST]:
    """Yield all that is in a loop, and not in a function or another loop within it."""
    waiting: list[ast.AST] = [*loop.body]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, *_LOOPS, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def _is_way_out(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return dotted(node.func) in vocabulary.EXITS
    return isinstance(node, _ENDS)


def _calls_itself(function: ast.FunctionDef) -> bool:
    """Whether a function calls itself before anything could keep it from that."""
    for statement in function.body:
        if not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign | ast.Return):
            return False
        if statement.value is not None and _is_sure_to_call(statement.value, function.name):
            return True
        if isinstance(statement, ast.Return):
            return False
    return False


def _is_sure_to_call(expression: ast.expr, name: str) -> bool:
    waiting: list[ast.AST] = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            return True
        # What is in these may never be worked out.
        if not isinstance(node, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.Yield, *_COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)
    return False
