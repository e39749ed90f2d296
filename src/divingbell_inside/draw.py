"""A program that draws a PNG: `draw.py svg` or `draw.py vega`, from standard input to output.

It is a process of its own. The libraries that draw run foreign code, start threads, and end the
whole process where they find too little memory; none of it must happen to the interpreter.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from typing import Any

Draw = Callable[[Any, bytes], bytes]
LIBRARIES: dict[str, dict[str, Draw]] = {
    "svg": {
        "cairosvg": lambda library, data: library.svg2png(bytestring=data),
        "resvg_py": lambda library, data: library.svg_to_bytes(svg_string=data.decode()),
        "vl_convert": lambda library, data: library.svg_to_png(data.decode()),
    },
    "vega": {"vl_convert": lambda library, data: library.vegalite_to_png(data.decode())},
}


def library_for(kind: str) -> str | None:
    """The library of the profile that can draw this, if it has one."""
    return next((name for name in LIBRARIES[kind] if importlib.util.find_spec(name)), None)


def main(kind: str) -> None:
    name = library_for(kind)
    if name is None:
        sys.exit(f"there is nothing here that draws {kind}")
    drawn = LIBRARIES[kind][name](importlib.import_module(name), sys.stdin.buffer.read())
    sys.stdout.buffer.write(drawn)


if __name__ == "__main__":
    main(sys.argv[1])
