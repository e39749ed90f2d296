"""The reader: one walk over the tree of a cell, which tells what stands out.

It knows no settings. The walk keeps a stack of its own, so that no nesting is too deep for it.
"""

import ast
from typing import Any, NamedTuple, TypeAlias

from divingbell.review import vocabulary
from divingbell.review.estimate import ARRAYS, LOOPS_A_SECOND, Estimate
from divingbell.review.names import Names, dotted, root_of
from divingbell.review.sights import Sights, shown
from divingbell.review.uses import Uses
from divingbell.syntax import BARE, PARTS, nothing

MAX_TARGETS = 100
"""Names that one assignment binds."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IMPORTS = (ast.Import, ast.ImportFrom)
_TRIES = (ast.Try, ast.TryStar)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
_ENDS = (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Await)
_ENTERED = frozenset({
    ast.BinOp, ast.Assign, ast.arg, *_IMPORTS, *_TRIES, *_LOOPS, *_COMPREHENSIONS, *_FUNCTIONS,
})  # fmt: skip
"""Kinds of nodes that are looked at as they are met."""
_APART = frozenset({*_FUNCTIONS, ast.ClassDef})
"""Kinds of nodes with code that ends nothing around it."""
_BARE = BARE | {ast.Constant}
"""Kinds that say nothing. What a constant is, is asked of what it stands in."""


def _inside(node: ast.AST) -> list[ast.AST]:
    """Return what is in a node, without most of what has nothing in it."""
    nodes: list[ast.AST] = []
    for part in PARTS.get(type(node), nothing)(node):
        if type(part) is list:
            nodes += part[::-1]
        elif type(part) not in _BARE:
            nodes.append(part)
    return nodes


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


class _Ends(NamedTuple):
    """What ends a loop."""

    leaves: bool
    """Something that ends more than this loop: all loops around it in the same function, too."""
    breaks: bool


class Reader:
    """Looks at one tree."""

    def __init__(self, bounds: Bounds, sights: Sights) -> None:
        self._bounds = bounds
        self._sights = sights
        self._names = Names()
        self._uses = Uses(self._names, sights)
        self._estimate = Estimate()
        self._ends: dict[_Loop, _Ends] = {}
        self._kept: list[tuple[ast.expr, _Place]] = []
        """Calls and dotted names, for when all imports are known."""

    def read(self, tree: ast.Module) -> None:
        """Look at all of it."""
        self._walk(tree)
        for node, place in self._kept:
            if type(node) is ast.Call:
                self._look_at_call(node, place)
            else:
                self._uses.look_at_name(node)

    def _look_at_call(self, node: ast.Call, place: _Place) -> None:
        called = dotted(node.func)
        if not called:  # a method of what another call returns, most often
            self._uses.look_at_file(node, "")
            return
        name = self._names.resolved(called) or called
        self._uses.look_at_call(node, name, in_loop=place.in_loop, endless=place.endless)
        if name in ARRAYS:
            self._look_at_size(self._estimate.array(node, name), node)

    # The walk

    def _walk(self, tree: ast.Module) -> None:
        # Written out, and with few calls: it is most of what a review takes beside the parser.
        # Behind what is in a loop or a function waits the place that holds again after it.
        place = _TOP
        waiting: list[Any] = [tree]
        keep, evaluators, enter = self._kept.append, vocabulary.EVALUATORS, self._enter
        pop, push, parts, bare = waiting.pop, waiting.append, PARTS, _BARE
        attribute, name, call = ast.Attribute, ast.Name, ast.Call
        while waiting:
            node = pop()
            kind = type(node)
            if kind in bare:
                continue
            if kind is attribute:
                keep((node, place))
                node = root_of(node)
                kind = type(node)
            if kind is name:
                if node.id in evaluators:
                    keep((node, place))
                continue
            if kind is call:
                keep((node, place))
            elif kind is _Place:
                place = node
                continue
            elif kind in _ENTERED:
                inner = enter(node, place)
                if inner is not place:
                    push(place)
                    place = inner
            for part in parts[kind](node):
                if type(part) is list:
                    waiting += part[::-1]
                elif type(part) not in bare:
                    push(part)

    def _enter(self, node: ast.AST, place: _Place) -> _Place:
        """Look at a node, and return the place of what is in it."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.BinOp):
            self._look_at_size(self._estimate.size(node), node)
        elif isinstance(node, _IMPORTS):
            self._look_at_import(node)
        elif isinstance(node, _LOOPS):
            return self._enter_loop(node, place)
        elif isinstance(node, _TRIES):
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
        # Whether it has an end is asked only of loops that may need one: of most it says nothing.
        if isinstance(node, ast.While):
            endless, rounds = _is_always(node.test) and not self._has_end(node), 1.0
        else:
            self._bind(node.target, None)
            endless = self._counts_for_ever(node.iter) and not self._has_end(node)
            rounds = self._estimate.rounds(node.iter)
            if rounds != 1.0 and self._has_end(node):
                rounds = 1.0
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
        return any(self._ends_of(loop))

    def _ends_of(self, loop: _Loop) -> "_Ends":
        """Return what ends a loop, of all that is in it and not in a function within it."""
        known = self._ends.get(loop)
        if known is None:
            known = self._ends[loop] = self._ends_in(loop.body)
        return known

    def _ends_in(self, body: list[ast.stmt]) -> "_Ends":
        breaks = False
        waiting: list[ast.AST] = [*body]
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind is ast.Break:
                breaks = True
            elif isinstance(node, _LOOPS):
                if self._ends_of(node).leaves:  # more than that one: this one, too
                    return _Ends(leaves=True, breaks=breaks)
            elif _is_way_out(node):
                return _Ends(leaves=True, breaks=breaks)
            elif kind not in _APART:
                waiting += _inside(node)
        return _Ends(leaves=False, breaks=breaks)

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
            waiting += _inside(node)
    return False
