"""The checks that code passes before it becomes a skill. Nothing of it is run or imported here."""

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

from divingbell.border.border import Border
from divingbell.border.privacy.blotter import BLOTTER
from divingbell.border.vault import tokens
from divingbell.errors import SkillRefused
from divingbell.principal import Principal
from divingbell.review.reviewer import AT_ONCE, MAX_CODE
from divingbell.shares import weight
from divingbell.syntax import FILE, parsed
from divingbell.text import one_line

MAX_EXAMPLE = 4_000
MAX_NAMED = 5
"""Names from outside that a message lists."""
_MODULE_NAMES = frozenset({
    *dir(builtins), "__name__", "__doc__", "__file__", "__spec__", "__loader__", "__package__",
    "__builtins__", "__annotations__",
})  # fmt: skip
_PROMPT, _MORE = ">>> ", "... "
_Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Reading:
    """Code of a skill that was read: what it can be called with, and how it is tried."""

    module: str
    code: str
    docstring: str
    signature: str
    """Such as `top_customers(limit: int=3)`; empty where it has no function of its name."""
    example: str


async def read(module: str, code: str, example: str | None) -> Reading:
    """Return what was read in code that shall be a skill of this module.

    Raises:
        SkillRefused: it is too long, no Python, without a docstring or an example, or it uses
            names from outside.
    """
    for what, given, most in (("code", code, MAX_CODE), ("example", example or "", MAX_EXAMPLE)):
        if len(given) > most:
            raise SkillRefused(
                f"the {what} is too long: it has {len(given):,} characters, {most:,} are the most"
            )
    if len(code) <= AT_ONCE:
        return _read(module, code, example)
    return await weight.in_thread(lambda: _read(module, code, example))


def _read(module: str, code: str, example: str | None) -> Reading:
    tree = _tree("code", code)
    _check_imports(tree)
    _check_names(tree, code)
    defined = [each for each in tree.body if isinstance(each, _Defined) and each.name == module]
    own = defined[-1] if defined else None
    docstring = ast.get_docstring(tree if own is None else own) or ""
    if not docstring.strip():
        raise SkillRefused(
            f"the code has no function {module}: define one, with a docstring"
            if own is None
            else f"{module} has no docstring: say there what it does, and what it takes and returns"
        )
    signature = "" if own is None else _signature(own)
    return Reading(module, code, docstring, signature, _example(module, own, docstring, example))


def _tree(what: str, code: str) -> ast.Module:
    try:
        return parsed(code)
    except SyntaxError as error:
        words = one_line(error.msg or "", 200)
        raise SkillRefused(f"the {what} is no Python: line {error.lineno or 1}: {words}") from None
    except (RecursionError, MemoryError):
        raise SkillRefused(f"the {what} is nested too deep to be read") from None
    except ValueError:  # zero bytes, and halves of characters
        raise SkillRefused(f"the {what} has characters that no code has") from None


def _check_imports(tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or node.names[0].name == "*"):
            raise SkillRefused(
                f"line {node.lineno} imports {'*' if not node.level else 'from beside itself'}: "
                "import each name that it uses, from a module"
            )


def _check_names(tree: ast.Module, code: str) -> None:
    """Refuse what the code uses and does not define: in another session it is not there."""
    try:
        missing = _outside(symtable.symtable(code, FILE, "exec"))
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise SkillRefused(f"the code can't be compiled: {one_line(str(error), 200)}") from None
    if not missing:
        return
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in missing:
            lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
    places = sorted((lines.get(name, 1), name) for name in missing)
    listed = ", ".join(f"{one_line(name, 80)} (line {line})" for line, name in places[:MAX_NAMED])
    raise SkillRefused(
        f"it uses names from outside: {listed}. Make them parameters, or import them in the code; "
        "search_tools and the like are in the module tool_discovery"
    )


def _outside(top: symtable.SymbolTable) -> set[str]:
    used: set[str] = set()
    known: set[str] = set(_MODULE_NAMES)
    for symbol in _global_symbols(top):
        if symbol.is_referenced():
            used.add(symbol.get_name())
        if symbol.is_assigned() or symbol.is_imported():
            known.add(symbol.get_name())
    return used - known


def _global_symbols(top: symtable.SymbolTable) -> Iterator[symtable.Symbol]:
    """Yield what is a name of the module, wherever it is used."""
    waiting = [top]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        if isinstance(table, symtable.Function):
            # Not `Symbol.is_global`: Python takes a function that is called `top` for the module.
            yield from map(table.lookup, table.get_globals())
        else:
            yield from (symbol for symbol in table.get_symbols() if symbol.is_global())


def _signature(own: _Defined) -> str:
    if isinstance(own, ast.ClassDef):
        return own.name
    returns = f" -> {ast.unparse(own.returns)}" if own.returns else ""
    return f"{own.name}({ast.unparse(own.args)}){returns}"


def _example(module: str, own: _Defined | None, docstring: str, given: str | None) -> str:
    example = given if given is not None else _in_docstring(docstring)
    if not example.strip() and own is not None and _needs_nothing(own):
        example = f"{'await ' if isinstance(own, ast.AsyncFunctionDef) else ''}{module}()"
    if not example.strip():
        raise SkillRefused(
            f'there is no example: pass example="{module}(…)", or write one behind >>> in the '
            "docstring. It is run once, with what tools have answered in this session"
        )
    if len(example) > MAX_EXAMPLE:
        raise SkillRefused(f"the example is too long: {MAX_EXAMPLE:,} characters are the most")
    names = {node.id for node in ast.walk(_tree("example", example)) if isinstance(node, ast.Name)}
    if own is not None and module not in names:
        raise SkillRefused(f"the example does not use {module}: call it there")
    return example.strip("\n")


def _needs_nothing(own: _Defined) -> bool:
    if isinstance(own, ast.ClassDef):
        return False
    given = own.args
    positional = len(given.posonlyargs) + len(given.args)
    return positional == len(given.defaults) and None not in given.kw_defaults


def _in_docstring(docstring: str) -> str:
    lines = [line.strip() for line in docstring.splitlines()]
    shown = [line for line in lines if line.startswith((_PROMPT, _MORE))]
    return "\n".join(line[len(_PROMPT) :] for line in shown)


# Personal data


async def check_privacy(texts: dict[str, str], border: Border, principal: Principal) -> None:
    """Refuse personal data, secrets and tokens in texts, whatever `privacy` says.

    A skill is there in other conversations, in which none of them has a place.

    Raises:
        SkillRefused: there is something, with its kind and its line.
        ConfigError: what searches is not installed.
    """
    scanner = await weight.in_thread(BLOTTER.scanner)
    for what, text in texts.items():
        for token in tokens.in_text(text):
            raise _personal(what, text.index(token), text, f"the token {token}")
        finds = await weight.in_thread(lambda text=text: scanner.finds(text))  # type: ignore[misc]
        if finds:
            raise _personal(
                what, finds[0].start, text, f"personal data or a secret ({finds[0].kind})"
            )
        shown = await border.outward(text, principal)
        if shown != text:
            at = next((at for at, (a, b) in enumerate(zip(text, shown, strict=False)) if a != b), 0)
            raise _personal(what, at, text, "a value that is hidden in this conversation")


def _personal(what: str, at: int, text: str, found: str) -> SkillRefused:
    if what == "name":
        return SkillRefused(f"the name has {found}: choose another")
    line = text.count("\n", 0, at) + 1
    return SkillRefused(f"line {line} of the {what} has {found}: make it a parameter")
