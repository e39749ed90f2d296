"""Conversations as files: notebooks that nbformat takes, scripts that compile, Markdown."""

import ast
import json
from pathlib import Path

import nbformat
import pytest

from divingbell import Divingbell
from divingbell.agent.agent import Agent
from divingbell.agent.exporting import FORMATS, exported, format_of
from divingbell.agent.history import Answered, Asked, Call, Entry, Image, Replied
from divingbell.agent.keeper import Keeper
from divingbell.agent.keeping import Conversations
from divingbell.agent.records import ShownCell
from divingbell.agent.scripted import Says, ScriptedModel
from divingbell.errors import InvalidInput

RUN = Call("a", "execute_python", json.dumps({"code": "print(6 * 7)"}))
TALK: list[Entry] = [
    Asked("what is it?\n\n[What is in the session now:\nfiles:\n  /workspace/f: 1 bytes]"),
    Replied("Let me see.", (RUN,)),
    Answered(RUN, "42\n"),
    Replied("It is 42."),
]


@pytest.mark.anyio
async def test_a_real_conversation_with_a_plot_is_exported_whole(tmp_path: Path) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('drawn')"
    lines = [Says("Drawing.", code), Says("", "1 / 0"), Says("There.")]
    conversation = Conversations(tmp_path / "kept", lambda: bytes(32)).begin()
    async with Divingbell(pool=0) as bell, bell.session(conversation.name) as session:
        agent = Agent(session, ScriptedModel(lines, sees_images=False), "")
        async for _ in Keeper(agent, conversation, bell.border).ask("draw"):
            pass
    conversation.close()
    notebook = nbformat.reads(exported("ipynb", agent.history, conversation.cells), as_version=4)
    nbformat.validate(notebook)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds == ["markdown", "markdown", "code", "code", "markdown"]
    drawing = notebook.cells[2]
    assert drawing.source == code
    assert "drawn" in drawing.outputs[0].text
    assert drawing.outputs[1].data["image/png"], "although the model sees no images"
    assert "ZeroDivisionError" in notebook.cells[3].outputs[0].text
    again = Conversations(tmp_path / "kept", lambda: bytes(32)).load()
    assert exported("ipynb", again.entries(), again.cells) == exported(
        "ipynb", agent.history, conversation.cells
    )


def test_a_script_has_the_code_and_the_words_as_comments() -> None:
    script = exported("py", TALK)
    assert "print(6 * 7)" in script and "# **You:** what is it?" in script
    assert "/workspace/f" not in script, "what is there was said to the model alone"
    printed = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]
    assert len(printed) == 1


def test_markdown_has_code_and_output_in_fences() -> None:
    assert exported("md", TALK) == (
        "**You:** what is it?\n\nLet me see.\n\n```python\nprint(6 * 7)\n```\n\n"
        "```text\n42\n```\n\nIt is 42.\n"
    )


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_words_never_become_code_of_a_script(end: str) -> None:
    words = f"harmless{end}import os; os.system('x')"
    tree = ast.parse(exported("py", [Asked(words), Replied(words)]))
    assert not tree.body


def test_an_output_can_not_close_its_fence() -> None:
    text = "```\n# a heading\n````\n```python"
    cell = ShownCell("print(1)", text)
    written = exported("md", [Asked("q"), Asked("Output:\n" + text)], {1: cell})
    assert f"`````text\n{text}\n`````" in written


def test_escapes_of_terminals_are_taken_out() -> None:
    for format in FORMATS:
        written = exported(format, [Replied("\x1b]0;title\x07\x1b[2Jhello\u202e")])
        assert "hello" in written and "\x1b" not in written and "\u202e" not in written


def test_images_are_in_the_file_itself() -> None:
    cell = ShownCell("draw()", "", "ok", (Image("image/png", b"\x89PNG"),))
    entries: list[Entry] = [Asked("q"), Answered(RUN, "")]
    assert "![plot](data:image/png;base64,iVBORw==)" in exported("md", entries, {1: cell})
    notebook = nbformat.reads(exported("ipynb", entries, {1: cell}), as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[1].outputs[0].data == {"image/png": "iVBORw=="}


def test_tools_that_were_called_directly_are_told() -> None:
    call = Call("b", "shop__find", '{"name": "lamp"}')
    entries: list[Entry] = [Asked("q"), Replied("", (call,)), Answered(call, "one lamp")]
    assert 'shop__find({"name": "lamp"})\none lamp' in exported("md", entries)


def test_an_empty_conversation_is_valid_too() -> None:
    nbformat.validate(nbformat.reads(exported("ipynb", []), as_version=4))
    assert not ast.parse(exported("py", [])).body


def test_the_name_says_the_format() -> None:
    assert [format_of(Path(name)) for name in ("a.ipynb", "b.PY", "c.md")] == list(FORMATS)
    for name in ("a", "a.txt", ".py"):
        with pytest.raises(InvalidInput, match="ends in"):
            format_of(Path(name))
