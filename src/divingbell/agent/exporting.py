"""A conversation as a file for people: a notebook, a script, or a text in Markdown.

What a model or code has written stays what it is: an output can't end the block that it stands in,
and a comment of a script can't become code.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from divingbell.agent.code_tool import NAME as EXECUTE
from divingbell.agent.history import Answered, Asked, Entry, is_output
from divingbell.agent.inventory import without_inventory
from divingbell.agent.records import ShownCell, cells_in
from divingbell.errors import InvalidInput
from divingbell.text import uncovered

Format = Literal["ipynb", "py", "md"]
FORMATS: tuple[Format, ...] = get_args(Format)
MOST_QUOTED = 2_000
"""Characters of the result of a tool that was called without code."""
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_TICKS = re.compile(r"`{3,}")
_SCRIPT_HEAD = (
    "# A conversation, with the code that was run in it.\n"
    "# Run it with `divingbell run`: it may use tools of servers, and `await` outside of functions."
)


@dataclass(frozen=True, slots=True)
class Words:
    """What somebody said."""

    who: Literal["person", "model", "tool"]
    text: str


def format_of(path: Path) -> Format:
    """Return the format that a file has by its name.

    Raises:
        InvalidInput: it is none of those that there are.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise InvalidInput(
            f"{path.name!r:.80} says no format: write a name that ends in .ipynb, .py or .md"
        )
    return suffix


def exported(
    format: Format, entries: Sequence[Entry], cells: Mapping[int, ShownCell] | None = None
) -> str:
    """Return a conversation in a format.

    `cells` have all that was shown, images too, by the place of the entry that has the output (see
    `Conversation.cells`); without them it is what the model has read. Tokens stay tokens: whoever
    wants the values passes entries with them (`records.screened`).
    """
    parts = list(_parts(entries, cells_in(entries, cells or {})))
    if format == "ipynb":
        return _notebook(parts)
    return _script(parts) if format == "py" else _markdown(parts)


def _parts(entries: Sequence[Entry], cells: Mapping[int, ShownCell]) -> Iterator[Words | ShownCell]:
    for place, entry in enumerate(entries):
        if place in cells:
            yield cells[place]
        elif isinstance(entry, Asked):
            if not is_output(entry):  # else it has not come from the person
                yield Words("person", _clean(without_inventory(entry.text)))
        elif not isinstance(entry, Answered):
            if entry.text.strip():
                yield Words("model", _clean(entry.text))
        elif entry.call.name != EXECUTE:
            told = f"{entry.call.name}({entry.call.arguments})\n{entry.text}"
            yield Words("tool", _clean(told[:MOST_QUOTED]))


def _clean(text: str) -> str:
    """Return text without what hides something or moves the cursor of a terminal."""
    return uncovered(_LINE_ENDS.sub("\n", text))


# As a notebook


def _notebook(parts: list[Words | ShownCell]) -> str:
    made = [_cell(number, part) for number, part in enumerate(parts, 1)]
    count = 0
    for cell in made:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(number: int, part: Words | ShownCell) -> dict[str, Any]:
    cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}}
    if isinstance(part, Words):
        return {**cell, "cell_type": "markdown", "source": _said(part)}
    outputs: list[dict[str, Any]] = []
    if part.text:
        stream = "stdout" if part.status == "ok" else "stderr"
        outputs.append({"output_type": "stream", "name": stream, "text": _clean(part.text)})
    for image in part.images:
        data = {image.type: base64.b64encode(image.data).decode()}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    code = {"cell_type": "code", "execution_count": None, "source": part.code}
    return {**cell, **code, "outputs": outputs}


# As a script


def _script(parts: list[Words | ShownCell]) -> str:
    blocks = [_SCRIPT_HEAD]
    for part in parts:
        if isinstance(part, Words):
            blocks.append(f"# %% [markdown]\n{_comment(_said(part))}")
        else:
            code = part.code.rstrip("\n")
            status = "" if part.status == "ok" else f" ({part.status})"
            blocks.append(f"# %%{status}\n{code}")
    return "\n\n".join(blocks) + "\n"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in _LINE_ENDS.split(text))


# As Markdown


def _markdown(parts: list[Words | ShownCell]) -> str:
    return (
        "\n\n".join(
            _said(part) if isinstance(part, Words) else "\n\n".join(_shown(part)) for part in parts
        ).rstrip("\n")
        + "\n"
    )


def _shown(cell: ShownCell) -> Iterator[str]:
    yield fenced("python", cell.code)
    if cell.text:
        yield fenced("text", _clean(cell.text))
    for image in cell.images:
        yield f"![plot](data:{image.type};base64,{base64.b64encode(image.data).decode()})"


def _said(words: Words) -> str:
    if words.who == "tool":
        return fenced("text", words.text)
    return f"**You:** {words.text}" if words.who == "person" else words.text


def fenced(language: str, text: str) -> str:
    """Return text in a fence that it can't close."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}"
