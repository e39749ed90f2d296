"""Code in the fences of Markdown, for models that can't call tools.

Only closed fences that say they are Python are code. Others are text, and so is one that is not
closed: the model may not have finished it.
"""

import re

_OPEN = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*(\S*)[^\n`]*$")
PYTHON = frozenset({"python", "python3", "py", "ipython"})


def blocks(text: str) -> list[str]:
    """Return the code of all closed fences of Python, in their order."""
    found: list[str] = []
    fence, is_python = "", False
    lines: list[str] = []
    for line in text.split("\n"):
        if not fence:
            if match := _OPEN.match(line.rstrip("\r")):
                fence, is_python, lines = match[1], match[2].lower() in PYTHON, []
        elif _closes(line, fence):
            if is_python and any(each.strip() for each in lines):
                found.append("\n".join(lines) + "\n")
            fence = ""
        else:
            lines.append(line)
    return found


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and set(stripped) == {fence[0]}
