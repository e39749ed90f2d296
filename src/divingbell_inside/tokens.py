"""Tokens in a cell: their values are set into the constants of its syntax tree.

Never into its text: there a quote in a value would end the constant, and the rest would be code. So
the source that tracebacks and `inspect` show has the tokens, as it was written.
"""

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

TOKEN = re.compile(r"\[[A-Z][A-Z0-9_]*\]")
"""The shape of tokens, and of more: only those that come with the cell stand for something."""
_TOKEN_AS_BYTES = re.compile(TOKEN.pattern.encode())

Tree = TypeVar("Tree", bound=ast.AST)


def to_json(values: Mapping[str, str]) -> bytes:
    """Return tokens and their values as JSON. Escapes would join two halves of a character."""
    return json.dumps(dict(values), ensure_ascii=False).encode("utf-8", "surrogatepass")


class TokenValues:
    """The values of the tokens in the cell that runs. IPython takes it as a transformer of syntax
    trees, too: so they are set into the Python that `%%time` and the like compile by themselves."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def take(self, raw: bytes) -> None:
        """Take over what `to_json` has written for a cell; nothing where there are no tokens."""
        self._values = json.loads(raw.decode("utf-8", "surrogatepass")) if raw else {}

    def visit(self, tree: Tree) -> Tree:
        """Set the values into the constants of a tree; return the same tree."""
        waiting: list[ast.AST] = [tree] if self._values else []
        while waiting:  # a long sum is nested more deeply than Python can recurse
            node = waiting.pop()
            if isinstance(node, ast.Constant):
                node.value = self._restored(node.value)
            elif not _is_told_to_ipython(node):
                waiting += ast.iter_child_nodes(node)
        return tree

    def _restored(self, constant: Any) -> Any:
        # Each constant is gone through once: what looks like a token in a value stays as it is.
        if isinstance(constant, str):
            return TOKEN.sub(lambda found: self._values.get(found[0], found[0]), constant)
        if isinstance(constant, bytes):
            return _TOKEN_AS_BYTES.sub(self._value_as_bytes, constant)
        return constant

    def _value_as_bytes(self, found: re.Match[bytes]) -> bytes:
        value = self._values.get(found[0].decode())
        return found[0] if value is None else value.encode("utf-8", "surrogatepass")


def _is_told_to_ipython(node: ast.AST) -> bool:
    """Whether it is what IPython makes of `!`, `%` and `?`: the text in it becomes shell code."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython")))):
            return True
    return False
