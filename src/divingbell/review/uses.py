"""Uses: what the calls and the dotted names of a cell do, once all its imports are known."""

import ast
from collections.abc import Iterator

from divingbell.review import vocabulary
from divingbell.review.names import (
    MAX_CHAIN,
    Names,
    chain,
    dotted,
    kind_of,
    prefixes,
    text_of,
)
from divingbell.review.sights import Sights, shown
from divingbell.settings.review import ReviewKind

VERBS: dict[ReviewKind, str] = {
    "process": "starts a process with",
    "network": "uses the network with",
    "dynamic": "uses",
}
_ADDRESSES = ("http://", "https://", "ftp://", "s3://")
_READING = ("read_", "load", "open", "scan_", "urlopen", "urlretrieve")
_WRITING = frozenset("wax+")
_TOLD_APART = frozenset({"getattr", vocabulary.CALL_TOOL}).union(
    vocabulary.FORKS, vocabulary.THREADS, vocabulary.IMPORTERS, vocabulary.NAMESPACES
)
"""Functions of which more is looked at than files, beside those of a kind."""
_OPENERS = frozenset({"open", "io.open", "builtins.open"})
_WRITERS = _OPENERS.union(vocabulary.PATH_FIRST, vocabulary.PATH_SECOND)
_WRITING_METHODS = frozenset({"open"}).union(vocabulary.WRITING_METHODS, vocabulary.PATH_METHODS)


class Uses:
    """Looks at the uses of names in one cell."""

    def __init__(self, names: Names, sights: Sights) -> None:
        self._names = names
        self._sights = sights

    def look_at_name(self, node: ast.expr) -> None:
        """Look at a name of Python's own, or at attributes of something."""
        if isinstance(node, ast.Name):
            if not self._names.is_bound(node.id):
                self._sights.see("dynamic", node.lineno, f"uses {node.id}", node.id)
            return
        used, root = chain(node)
        if not vocabulary.INNER_ATTRIBUTES.isdisjoint(used):
            for attribute in vocabulary.INNER_ATTRIBUTES.intersection(used):
                self._sights.see("dynamic", node.lineno, f"reaches for {attribute}", attribute)
        # Most are of something that the cell has made.
        if isinstance(root, ast.Name) and self._names.module_of(root.id):
            self._look_at_function(self._names.resolved(dotted(node)), node.lineno)

    def _look_at_function(self, name: str, line: int) -> None:
        if name.startswith(f"{vocabulary.SERVERS}."):
            self.take_tool(name, line)
        elif (kind := kind_of(name)) is not None:
            self._sights.see(kind, line, f"{VERBS[kind]} {shown(name)}", name)

    def take_tool(self, name: str, line: int) -> None:
        """Keep `servers.shop.refund` as `shop.refund`; more may follow, as in `.submit`."""
        parts = name.split(".")[1:3]
        if len(parts) == 2:
            self._sights.see_tool(".".join(parts), line)

    def look_at_call(self, node: ast.Call, name: str, *, in_loop: bool, endless: bool) -> None:
        """Look at the call of a function that has this dotted name."""
        kind = kind_of(name)
        if kind is None and name not in _TOLD_APART:
            self.look_at_file(node, name)
            return
        if name in vocabulary.FORKS and in_loop:
            what = "forks in a loop, and each process goes on with it"
            self._sights.see("bomb", node.lineno, what)
        elif endless and (kind == "process" or name in vocabulary.THREADS):
            what = f"starts {shown(name)} in a loop without an end"
            self._sights.see("bomb", node.lineno, what, name)
        if kind == "process":
            self._look_at_command(node)
        elif name in vocabulary.IMPORTERS:
            self._look_at_made_import(node, name)
        elif name == "getattr":
            self._look_at_getattr(node)
        elif name == vocabulary.CALL_TOOL:
            self._sights.see_tool(_first_text(node) or "?", node.lineno)
        elif name in vocabulary.NAMESPACES and not node.args:
            self._sights.see("dynamic", node.lineno, f"looks names up in {name}()", name)
        else:
            self.look_at_file(node, name)

    def look_at_file(self, node: ast.Call, name: str) -> None:
        """Look at what a call reads from the network, and where it writes to."""
        method = node.func.attr if type(node.func) is ast.Attribute else ""
        if name in _WRITERS or method in _WRITING_METHODS:
            self._sights.see_written(self._written(node, name, method), node.lineno)
        is_reading = name.rpartition(".")[2].startswith(_READING)
        if is_reading and (address := _first_text(node)).startswith(_ADDRESSES):
            self._sights.see("network", node.lineno, f"reads {shown(address)}", address)

    def look_at_import(self, module: str, line: int) -> None:
        """Look at a module that is imported, by its dotted name."""
        self._sights.modules.append((line, module))
        name = next((one for one in prefixes(module) if one in vocabulary.IMPORTS), None)
        if name is not None:
            kind = vocabulary.IMPORTS[name]
            why = "needs a network" if kind == "network" else "runs code that can't be read"
            self._sights.see(kind, line, f"imports {name}, which {why}", name)

    def look_at_imported_name(self, module: str, name: str, line: int) -> None:
        """Look at a name that is imported from a module."""
        full = f"{module}.{name}"
        if full in vocabulary.IMPORTS:
            self.look_at_import(full, line)
            return
        self.look_at_import(module, line)
        self._look_at_function(full, line)

    def _look_at_made_import(self, node: ast.Call, name: str) -> None:
        if module := _first_text(node):
            self.look_at_import(module, node.lineno)
        else:
            what = "imports a module that is named at run time"
            self._sights.see("dynamic", node.lineno, what, name)

    def _look_at_getattr(self, node: ast.Call) -> None:
        """`getattr(os, "system")` is `os.system`; with a name from elsewhere it may be anything."""
        of = self._names.resolved(dotted(node.args[0])) if len(node.args) > 1 else ""
        if not of:
            return
        if name := text_of(node.args[1]):
            self._look_at_function(f"{of}.{name}", node.lineno)
        else:
            what = f"takes something of {shown(of)} whose name is made at run time"
            self._sights.see("dynamic", node.lineno, what, of)

    def _look_at_command(self, node: ast.Call) -> None:
        first = node.args[0] if node.args else None
        given = first.elts[:MAX_CHAIN] if isinstance(first, ast.List | ast.Tuple) else [first]
        self._sights.see_shell(" ".join(map(text_of, given)), node.lineno)

    def _written(self, node: ast.Call, name: str, method: str) -> Iterator[str]:
        """The paths that a call writes to, as far as they are constants."""
        if name in _OPENERS:
            if _WRITING.intersection(_mode(node, 1)):
                yield _first_text(node)
        elif name in vocabulary.PATH_FIRST or method in vocabulary.WRITING_METHODS:
            yield _first_text(node)
        elif method in vocabulary.PATH_METHODS or (
            method == "open" and _WRITING.intersection(_mode(node, 0))
        ):
            yield self._path_of(node.func)
        if name in vocabulary.PATH_SECOND and len(node.args) > 1:
            yield text_of(node.args[1])

    def _path_of(self, method: ast.expr) -> str:
        """The text in `Path("…").write_text`; empty for a method of anything else."""
        made = method.value if isinstance(method, ast.Attribute) else None
        if not isinstance(made, ast.Call) or len(made.args) != 1:
            return ""
        is_path = self._names.resolved(dotted(made.func)) == "pathlib.Path"
        return _first_text(made) if is_path else ""


def _first_text(node: ast.Call) -> str:
    return text_of(node.args[0]) if node.args else ""


def _mode(node: ast.Call, place: int) -> str:
    if len(node.args) > place:
        return text_of(node.args[place])
    return next((text_of(word.value) for word in node.keywords if word.arg == "mode"), "")
