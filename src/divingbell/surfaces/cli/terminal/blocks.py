"""Blocks of code that is typed line by line, each to its end.

As at Python's own prompt: a statement ends with its line, a block with an empty line. Beyond
Python there are IPython's `!command` and `%magic` lines, and `await` outside of functions.
"""

import ast
import codeop
import re

_compile = codeop.CommandCompiler()
_compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

_SPECIAL_LINE = re.compile(r"^([ \t]*)(?:[!%?].*|[\w.]+\?{1,2}[ \t]*)$", re.MULTILINE)
_SPECIAL_VALUE = re.compile(r"^([ \t]*[\w, \t]+=[ \t]*)[!%].*$", re.MULTILINE)
_CELL_MAGIC = "%%"
_CONTINUES = re.compile(r"[ \t#)\]}]|(?:else|elif|except|finally|case)\b")
"""Starts of lines that can't begin a new statement."""


def is_complete(source: str) -> bool:
    """Whether the code is to be run now; if not, more lines are expected.

    Code that is wrong is complete: the session says best what is wrong with it.
    """
    source = source.rstrip(" \t")
    if source.lstrip().startswith(_CELL_MAGIC):
        return source.endswith("\n") and "\n" in source.strip()
    if source.endswith("\\"):
        return False
    plain = _SPECIAL_VALUE.sub(r"\g<1>0", _SPECIAL_LINE.sub(r"\1pass", source))
    for candidate in (source, plain):
        try:
            if _compile(candidate, symbol="exec") is None:
                return False
            return source.endswith("\n") or not _ends_in_block(candidate)
        except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
            continue
    return True


def _ends_in_block(source: str) -> bool:
    """Whether the last statement has a body, to which the next line may belong."""
    statements = ast.parse(source).body
    return bool(statements) and hasattr(statements[-1], "body")


class Blocks:
    """Puts lines together, where nobody at a keyboard says where a block ends."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def empty(self) -> bool:
        return not self._lines

    def feed(self, line: str) -> list[str]:
        """Take one line; return the blocks that are complete now."""
        found = []
        if self._lines and self._ends_before(line):
            found += self.finish()
        if self._lines or line.strip():
            self._lines.append(line)
            if is_complete("\n".join(self._lines)):
                found += self.finish()
        return found

    def finish(self) -> list[str]:
        """Return what is left, at the end of the input."""
        rest, self._lines = "\n".join(self._lines), []
        return [rest] if rest.strip() else []

    def _ends_before(self, line: str) -> bool:
        pending = "\n".join(self._lines)
        return (
            bool(line.strip())
            and _CONTINUES.match(line) is None
            and not pending.startswith(_CELL_MAGIC)
            and is_complete(pending + "\n")
        )
