"""Estimates: how large a number, a value or a loop will be, read off constants.

Nothing of the code is evaluated. Numbers are floats, so that `10**10**9` is merely infinite.
"""

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from divingbell.review.names import dotted

MAX_DEPTH = 8
"""Operators within each other that are followed."""
MAX_STEPS = 4_000
"""Numbers and operators that are looked at in one cell: some two milliseconds."""
LOOPS_A_SECOND = 2e7
"""Measured: an empty loop of Python 3.11 to 3.13 does 15 to 40 million rounds on a slow processor;
with anything in it, fewer."""
MOST_DIGITS = 1e7
"""Bytes of a number. Measured: one of 10 MB takes Python most of a minute to work out."""
_ITEM = 8
"""Bytes of an item of a list, or of an array."""
_TYPES = {"bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "int32": 4,
          "uint32": 4, "float32": 4, "complex128": 16}  # fmt: skip

ARRAYS = frozenset({
    "bytearray", "bytes", "numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full", "numpy.arange",
    "numpy.eye", "numpy.identity", "numpy.random.rand", "numpy.random.randn",
})  # fmt: skip
"""Functions that make something whose size their arguments say."""
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b,
    ast.LShift: lambda a, b: a * 2.0**b,
}


@dataclass(slots=True)
class Estimate:
    """Reads numbers off a piece of code whose constants are known by name."""

    names: dict[str, ast.expr | None] = field(default_factory=dict)
    """The expression of each name that is bound once; None for one that is bound again."""

    steps_left: int = MAX_STEPS

    def bind(self, name: str, value: ast.expr | None) -> None:
        """Keep what a name stands for, unless it stands for several things."""
        self.names[name] = None if name in self.names else value

    def number(self, node: ast.expr | None, depth: int = MAX_DEPTH) -> float | None:
        """Return the number that an expression stands for; None where that can't be told."""
        if node is None or depth < 0 or not self.steps_left:
            return None
        self.steps_left -= 1
        if isinstance(node, ast.Constant):
            return _as_float(node.value)
        if isinstance(node, ast.Name):
            return self.number(self.names.get(node.id), depth - 3)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.number(node.operand, depth - 1)
            return None if inner is None else -inner
        if isinstance(node, ast.BinOp):
            return self._result(node, depth - 1)
        if isinstance(node, ast.Call) and dotted(node.func) in ("int", "float", "round", "abs"):
            return self.number(node.args[0], depth - 1) if node.args else None
        return None

    def _result(self, node: ast.BinOp, depth: int) -> float | None:
        operator = _OPERATORS.get(type(node.op))
        if operator is None:
            return None
        left, right = self.number(node.left, depth), self.number(node.right, depth)
        if left is None or right is None:
            return None
        try:
            made = operator(left, right)
        except OverflowError:
            return math.inf
        except ZeroDivisionError:
            return None
        return made if isinstance(made, float) and not math.isnan(made) else None

    def rounds(self, iterated: ast.expr) -> float:
        """Return how many rounds a loop over this has; 1 where that can't be told."""
        if not (isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name)):
            return 1.0
        name, given = iterated.func.id, iterated.args
        if name in ("enumerate", "reversed", "list", "tqdm", "trange") and len(given) >= 1:
            return self._range(given) if name == "trange" else self.rounds(given[0])
        return self._range(given) if name == "range" else 1.0

    def _range(self, given: list[ast.expr]) -> float:
        numbers = [self.number(each) for each in given[:3]]
        if not numbers or None in numbers:
            return 1.0
        found = [number for number in numbers if number is not None]
        start, stop = (0.0, found[0]) if len(found) == 1 else (found[0], found[1])
        step = found[2] if len(found) == 3 else 1.0
        length = (stop - start) / step if step and math.isfinite(step) else 1.0
        return 1.0 if math.isnan(length) else max(length, 1.0)

    def size(self, node: ast.expr) -> float:
        """Return the bytes of the value of an operation; 0 where that can't be told."""
        if not isinstance(node, ast.BinOp):
            return 0.0
        if isinstance(node.op, ast.Mult):
            return max(self._repeated(node.left, node.right), self._repeated(node.right, node.left))
        if isinstance(node.op, ast.Pow | ast.LShift):
            return self._digits(node)
        return 0.0

    def _repeated(self, what: ast.expr, times: ast.expr) -> float:
        if isinstance(what, ast.Constant) and isinstance(what.value, str | bytes):
            length = float(len(what.value))
        elif isinstance(what, ast.List | ast.Tuple):
            length = float(_ITEM * len(what.elts))
        else:
            return 0.0
        return length * (self.number(times) or 0.0) if length else 0.0

    def _digits(self, node: ast.BinOp) -> float:
        """The bytes of a power of whole numbers; 0 for one that is small enough to be worked out.

        One of fractions is at most as large as a number of the machine.
        """
        left, right = self.number(node.left), self.number(node.right)
        if left is None or right is None or _has_fraction(node, MAX_DEPTH):
            return 0.0
        if isinstance(node.op, ast.LShift):
            size = right / 8
        else:
            size = right * math.log2(abs(left)) / 8 if abs(left) > 1 else 0.0
        return size if size > MOST_DIGITS else 0.0

    def array(self, call: ast.Call, function: str) -> float:
        """Return the bytes of what one of the functions in `ARRAYS` makes."""
        first = (self.number(call.args[0]) if call.args else None) or 0.0
        if function in ("bytearray", "bytes"):
            return first
        if function in ("numpy.random.rand", "numpy.random.randn"):
            return _ITEM * self._product(call.args)
        if function in ("numpy.eye", "numpy.identity"):
            return self._item(call) * first * first
        if function == "numpy.arange":
            return self._item(call) * first if len(call.args) == 1 else 0.0
        return self._item(call) * self._cells(call)

    def _cells(self, call: ast.Call) -> float:
        given = {word.arg: word.value for word in call.keywords}
        shape = call.args[0] if call.args else given.get("shape")
        parts = shape.elts if isinstance(shape, ast.Tuple | ast.List) else [shape] if shape else []
        return self._product(parts)

    def _product(self, parts: list[ast.expr]) -> float:
        product = 1.0 if parts else 0.0
        for part in parts[:MAX_DEPTH]:
            product *= max(self.number(part) or 0.0, 0.0)
        return 0.0 if math.isnan(product) else product

    def _item(self, call: ast.Call) -> int:
        for word in call.keywords:
            if word.arg == "dtype":
                kind = word.value
                name = kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", None)
                return _TYPES.get(str(name or getattr(kind, "value", "")), _ITEM)
        return _ITEM


def _as_float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _has_fraction(node: ast.expr, depth: int) -> bool:
    if depth < 0:
        return True
    if isinstance(node, ast.BinOp):
        return _has_fraction(node.left, depth - 1) or _has_fraction(node.right, depth - 1)
    return isinstance(node, ast.Constant) and isinstance(node.value, float)
