"""The instructions of an agent: a text that people can replace, and what is at hand here.

The bytes depend on the settings alone and stay the same for a whole conversation, so that the
caches of providers hold.
"""

from collections.abc import Iterable
from importlib import resources
from pathlib import Path

from divingbell.errors import ConfigError

MAX_PROMPT = 100_000
"""Characters of a prompt of one's own."""


def instructions(
    file: Path | None, packages: Iterable[str], servers: Iterable[str], signatures: str = ""
) -> str:
    """Return the instructions: those of the file, else the usual ones, and what is at hand.

    Raises:
        ConfigError: the file can't be read.
    """
    at_hand = [f"Packages: {', '.join(packages)}."]
    if names := sorted(servers):
        at_hand.append(
            f'Servers: {", ".join(names)}. Find their tools with `search_tools("…")` in code, '
            "call them with `from servers.SERVER import TOOL`."
        )
    if signatures:
        at_hand.append(f"Their tools:\n```python\n{signatures}\n```")
    return "\n".join([_usual() if file is None else _read(file), *at_hand])


def _usual() -> str:
    return resources.files("divingbell.agent").joinpath("prompt.md").read_text("utf-8")


def _read(file: Path) -> str:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the prompt {file} can't be read: {error}") from error
    if len(text) > MAX_PROMPT:
        raise ConfigError(f"the prompt {file} has more than {MAX_PROMPT:,} characters")
    return text
