"""The names that code gives to something, to say which cell has made a variable."""

import ast
import re

_ASSIGNED = re.compile(r"^\s*(\w+)\s*(?::[^=\n]+)?=(?!=)")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_INNER = (*_SCOPES, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_in(code: str) -> dict[str, str]:
    """Return the names that a cell binds in its namespace, as far as its text tells, each with the
    line that does so first."""
    lines = code.splitlines() or [""]
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # %magics and !commands
        matches = [(match[1], line) for line in lines if (match := _ASSIGNED.match(line))]
        return dict(reversed(matches))
    found: dict[str, int] = {}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if name := _name(node):
            line: int = getattr(node, "lineno", 1)
            found[name] = min(line, found.get(name, line))
        if not isinstance(node, _INNER):
            waiting += ast.iter_child_nodes(node)
    return {name: lines[line - 1] for name, line in found.items() if line <= len(lines)}


def _name(node: ast.AST) -> str:
    if isinstance(node, _SCOPES):
        return node.name
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0]
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
