"""The settings of the agent: the model that is asked, how it works, and where it stops."""

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from divingbell.settings.markers import Check, FilePath, at_least, more_than

AgentMode = Literal["auto", "code", "direct", "hybrid"]
MODES: tuple[AgentMode, ...] = get_args(AgentMode)


def _is_web_address(text: str) -> bool:
    return not text or text.startswith(("http://", "https://"))


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The `[agent]` table."""

    model: str = ""
    """The model, as provider:model; empty: by the keys that the environment has."""
    base_url: Annotated[str, Check("an address that begins with http", _is_web_address)] = ""
    """Where it is asked, if not at its provider's own address: Ollama, vLLM, llama.cpp …"""
    key_variable: str = ""
    """The variable that has the key for that address; no other key is sent there."""
    window: Annotated[int | None, at_least(1000)] = None
    """Tokens that the model can read at once, where that is not known."""
    call_tools: bool = True
    """Whether the model can call tools; if not, Python is read from the fences of its answers."""
    see_images: bool = True
    """Whether the model is shown plots."""
    mode: AgentMode = "auto"
    """How tools are used: from "code", "direct", both ("hybrid"), or "auto": by their number."""
    prompt: FilePath = ""
    """A file with instructions that take the place of the usual ones."""
    turns: Annotated[int, at_least(1)] = 40
    """Requests to the model for one answer."""
    tokens: Annotated[int | None, at_least(1)] = None
    """Tokens for one answer, read and written."""
    money: Annotated[float | None, more_than(0)] = None
    """US dollars for one answer, where the price of the model is known."""
    delegate_depth: Annotated[int, at_least(0)] = 1
    """How deep code can give work to helpers with `delegate`: helpers of helpers are 2; 0: none."""
