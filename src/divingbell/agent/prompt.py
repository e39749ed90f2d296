"""The instructions of an agent: a text that people can replace, and what is at hand here.

The bytes depend on the settings alone and stay the same for a whole conversation, so that the
caches of providers hold.
"""

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from divingbell.agent.mode_choice import Mode
from divingbell.errors import ConfigError

MAX_PROMPT = 100_000
"""Characters of a prompt of one's own."""
FILES: dict[Mode, tuple[str, ...]] = {
    "code": ("prompt_code.md", "prompt_habits.md"),
    "direct": ("prompt_direct.md",),
    "hybrid": ("prompt_code.md", "prompt_habits.md", "prompt_hybrid.md"),
}
FENCES = ("prompt_fences.md", "prompt_habits.md")
"""For a model that calls no tools: its code stands in its answers."""
DELEGATING = (
    '`delegate("task", context={"name": value}, tools=["server.tool"], budget=50_000)` in code has '
    "a helper with a session of its own do a part that takes much reading or judging of text; it "
    "returns the helper's result. Several at once: `await asyncio.gather(delegate(…), …)`."
)


def instructions(
    file: Path | None,
    packages: Iterable[str],
    servers: Iterable[str],
    signatures: str = "",
    mode: Mode = "code",
    delegates: bool = False,
    calls_tools: bool = True,
) -> str:
    """Return the instructions: those of the file, else the usual ones, and what is at hand.

    `signatures` are of all tools, `delegates` whether code can give work to helpers, `calls_tools`
    whether the model calls tools.

    Raises:
        ConfigError: the file can't be read.
    """
    text = _usual(FILES[mode] if calls_tools else FENCES) if file is None else _read(file)
    if mode == "direct":
        return text
    at_hand = [f"Packages: {', '.join(packages)}."]
    if delegates:
        at_hand.append(DELEGATING)
    if names := sorted(servers):
        at_hand.append(
            f'Servers: {", ".join(names)}. Find their tools with `search_tools("…")` in code, '
            "call them with `from servers.SERVER import TOOL`."
        )
    if signatures:
        at_hand.append(f"Their tools:\n```python\n{signatures}\n```")
    return "\n".join([text, *at_hand])


def _usual(files: tuple[str, ...]) -> str:
    folder = resources.files("divingbell.agent")
    return "".join(folder.joinpath(name).read_text("utf-8") for name in files)


def _read(file: Path) -> str:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the prompt {file} can't be read: {error}") from error
    if len(text) > MAX_PROMPT:
        raise ConfigError(f"the prompt {file} has more than {MAX_PROMPT:,} characters")
    return text
