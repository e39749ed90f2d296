"""The Python in a cell of a notebook: magics, `!` and `?` are taken out, and told apart.

The sandbox has IPython for these. This reads what it can of them without IPython, which takes a
third of a second to load: lines keep their numbers, and what is no Python becomes `pass`.
"""

import re
from dataclasses import dataclass, field

SHELL = "!"
"""The name that `!` has among the magics."""
_SHELL_MAGICS = frozenset({"bash", "sh", "script", "system", "sx", "perl", "ruby", "cmd"})
_TIMING = frozenset({"time", "timeit", "prun", "capture", "memit", "debug"})
"""Magics whose rest, and whose cell, is Python of this session."""
# No two parts of an expression can take the same character: a line may be long, and written for it.
_CELL = re.compile(r"%%(\w+)[ \t]*(.*)")
_LINE = re.compile(r"(?P<left>[ \t]*|[\w.,\[\]'\" \t]+=[ \t]*)(?P<sign>!!?|%)(?P<rest>.*)")
_HELP = re.compile(r"\?{1,2}[\w.*%]+;?|%{0,2}[\w.*]+\?{1,2};?")
_NAME = re.compile(r"(\w+)[ \t]*(.*)")
_OPTIONS = re.compile(r"(?:-\w+[ \t]+(?:\d+[ \t]+)?)*")


@dataclass(frozen=True, slots=True)
class Magic:
    """A line, or a whole cell, that IPython runs."""

    line: int
    name: str
    """`!` for a command of the shell."""
    rest: str
    """All that stands after it."""

    @property
    def is_shell(self) -> bool:
        """Whether a shell, or another program, runs it."""
        return self.name == SHELL or self.name in _SHELL_MAGICS


@dataclass(slots=True)
class CellSource:
    """A cell as Python, and what was in it besides."""

    python: str
    magics: list[Magic] = field(default_factory=list)


def read(code: str) -> CellSource:
    """Return the Python in a cell that is none as it stands."""
    lines = code.split("\n")
    made = CellSource("")
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if (found := _CELL.match(lines[first])) is not None:
        name, rest = found[1], found[2]
        if name not in _TIMING:
            made.magics.append(Magic(first + 1, name, rest + "\n" + "\n".join(lines[first + 1 :])))
            return made
        lines[first] = _python_of(rest) if name.startswith("time") else ""
    made.python = "\n".join(_python_lines(lines, made.magics))
    return made


def _python_lines(lines: list[str], magics: list[Magic]) -> list[str]:
    shown, at = [], 0
    while at < len(lines):
        line, number = lines[at], at + 1
        at += 1
        if _HELP.fullmatch(line.strip()):
            shown.append("")
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            shown.append(line)
            continue
        rest = [found["rest"]]
        while rest[-1].endswith("\\") and at < len(lines):
            rest[-1] = rest[-1][:-1]
            rest.append(lines[at])
            at += 1
        shown.append(_instead(found, " ".join(rest), number, magics))
        shown += [""] * (len(rest) - 1)
    return shown


def _instead(found: re.Match[str], rest: str, number: int, magics: list[Magic]) -> str:
    """Return the Python that stands for a line of IPython's, and keep what it was."""
    left = found["left"]
    standing = f"{left}None" if left.strip() else f"{left}pass"
    if found["sign"] != "%":
        magics.append(Magic(number, SHELL, rest.strip()))
        return standing
    named = _NAME.fullmatch(rest)
    if named is None:
        return standing
    if named[1] in _TIMING:
        return left + (_python_of(named[2]) or "pass")
    magics.append(Magic(number, named[1], named[2]))
    return standing


def _python_of(rest: str) -> str:
    """Return the statement after `%timeit -n 10`."""
    return _OPTIONS.sub("", rest, count=1)
