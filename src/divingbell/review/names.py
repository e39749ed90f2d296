"""Names: the modules and functions that the names of a cell stand for, as far as it can be read."""

import ast
from collections.abc import Iterator

from divingbell.review import vocabulary
from divingbell.settings.review import ReviewKind

MAX_CHAIN = 10
"""Names in a dotted name, and texts in a sum of texts, that are looked at."""
# The parser makes nodes of these very classes. Measured: `isinstance` takes three times as long.
_Attribute, _Name = ast.Attribute, ast.Name
_KNOWN_TOPS = frozenset(
    name.partition(".")[0] for name in (*vocabulary.FUNCTIONS, *vocabulary.MODULES)
)


class Names:
    """The names of one cell."""

    def __init__(self) -> None:
        self._aliases: dict[str, str] = {}
        """The dotted name of what a name of the cell was imported as."""
        self._bound: set[str] = set()
        """Names that the cell gives to something else."""

    def alias(self, name: str, dotted: str) -> None:
        """Keep that a name stands for a module, or for something in one."""
        self._aliases[name] = dotted

    def bind(self, name: str, value: ast.expr | None = None) -> None:
        """Keep what a name is given to: `s = os.system` makes it another name for that."""
        if resolved := self.resolved(dotted(value)):
            self._aliases[name] = resolved
        else:
            self._bound.add(name)

    def is_bound(self, name: str) -> bool:
        """Whether the cell gives this name to something of its own."""
        return name in self._bound

    def module_of(self, name: str) -> str:
        """Return the dotted name of what a name was imported as; empty where it is none."""
        module = self._aliases.get(name)
        if module is None and name not in self._bound:
            module = vocabulary.USUAL_NAMES.get(name)
        return module or ""

    def resolved(self, dotted_name: str) -> str:
        """Return a dotted name with the module for the alias in front; empty where it is none."""
        first, dot, rest = dotted_name.partition(".")
        module = self.module_of(first)
        return f"{module}{dot}{rest}" if module else ""


def prefixes(dotted_name: str) -> Iterator[str]:
    """Yield `a.b.c`, `a.b` and `a`: the longest first."""
    parts = dotted_name.split(".")[:MAX_CHAIN]
    for end in range(len(parts), 0, -1):
        yield ".".join(parts[:end])


def kind_of(dotted_name: str) -> ReviewKind | None:
    """Return what the function does that a dotted name stands for, or begins with."""
    top, dot, _ = dotted_name.partition(".")
    if not dot or top not in _KNOWN_TOPS:
        return None
    for name in prefixes(dotted_name):
        if name in vocabulary.HARMLESS:
            return None
        if name in vocabulary.FUNCTIONS:
            return vocabulary.FUNCTIONS[name]
    return vocabulary.MODULES.get(top)


def chain(node: ast.expr) -> tuple[list[str], ast.expr]:
    """Return the attributes of a chain, the last first, and the expression that it begins with."""
    names: list[str] = []
    while type(node) is _Attribute:
        names.append(node.attr)
        node = node.value
    return names, node


def root_of(node: ast.expr) -> ast.expr:
    """Return the expression that a chain of attributes begins with."""
    while type(node) is _Attribute:
        node = node.value
    return node


def dotted(node: ast.expr | None) -> str:
    """Return `a.b.c` for attributes of a name; empty for anything else."""
    if type(node) is _Name:
        return node.id
    if type(node) is not _Attribute:
        return ""
    parts, root = chain(node)
    if type(root) is not _Name:
        return ""
    parts.append(root.id)
    return ".".join(parts[: -MAX_CHAIN - 1 : -1])


def text_of(node: ast.expr | None, depth: int = MAX_CHAIN) -> str:
    """Return a text that is a constant, or put together from such; else as much as begins it."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return text_of(node.values[0]) if node.values else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth:
        left = text_of(node.left, depth - 1)
        return left and left + text_of(node.right, depth - 1)
    return ""
